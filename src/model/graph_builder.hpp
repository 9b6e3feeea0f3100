#pragma once
#include <string>
#include <vector>

#include "model/batch_shape.hpp"
#include "model/graph.hpp"

namespace foreshard::model {

/// What families have in common: adds tensors, parameters and operators to a forward graph, one after the other. All of
/// them belong to the unit that was begun last; a graph begins with its root. A token is a row; results have one row
/// for each.
class GraphBuilder {
 public:
  GraphBuilder(const BatchShape& shape, DType dtype);

  Graph take() { return std::move(graph_); }
  std::int64_t rows() const { return shape_.batch * shape_.seq; }
  const BatchShape& shape() const { return shape_; }
  TensorId tokens() const { return graph_.tokens; }
  TensorId targets() const { return graph_.targets; }
  /// Of all sequences, not of all tokens.
  void one_target_a_sequence() { graph_[graph_.targets].elements = shape_.batch; }

  /// What follows belongs to a new unit; or to the root again.
  void begin_unit(std::string name);
  void return_to_root() { unit_ = root_unit; }

  TensorId parameter(std::string name, std::vector<std::int64_t> shape, const Initial& initial);
  TensorId activation(std::int64_t elements);
  /// Adds a forward operator, of the module at `path`.
  Operator& op(const std::string& path, OpKind kind, const Sizes& sizes, std::vector<TensorId> inputs,
               std::vector<TensorId> outputs, float scalar = 0);

  /// The tokens' rows of `table` [vocab, width], plus those of `positions` [any, width] if there are any.
  TensorId embedding(const std::string& path, TensorId table, TensorId positions, std::int64_t vocab,
                     std::int64_t width);
  /// x·weightᵀ (+ bias): parameters `name`.weight [out, in], drawn with that deviation, and `name`.bias [out], of
  /// zeros.
  TensorId linear(const std::string& name, TensorId x, std::int64_t in, std::int64_t out, bool bias, double stddev);
  TensorId add(const std::string& path, TensorId a, TensorId b);
  /// Norms of rows of `width`: parameters `name`.weight, of ones, and `name`.bias, of zeros, if there is one.
  TensorId layer_norm(const std::string& name, TensorId x, std::int64_t width, double epsilon, bool bias = true);
  TensorId rms_norm(const std::string& name, TensorId x, std::int64_t width, double epsilon);
  /// A result as large as the first operand, computed element by element; rows of `cols`.
  TensorId elementwise(const std::string& path, OpKind kind, std::int64_t cols, std::vector<TensorId> operands);
  /// Attention of a kind; the result has `sizes.heads`·`sizes.inner` columns.
  TensorId attention(const std::string& path, OpKind kind, const Sizes& sizes, std::vector<TensorId> operands,
                     float scalar = 0);
  /// Logits x·weightᵀ of `vocab` and their loss against the targets, which ends the graph.
  void loss(TensorId x, TensorId weight, std::int64_t width, std::int64_t vocab);
  /// The loss of logits in rows of `classes`; ends the graph.
  void cross_entropy(TensorId logits, std::int64_t classes);

 private:
  TensorId input();

  BatchShape shape_;
  DType dtype_;
  Graph graph_;
  UnitId unit_ = root_unit;
};

}  // namespace foreshard::model
