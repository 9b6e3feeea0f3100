#include "model/graph_builder.hpp"

#include <utility>

namespace foreshard::model {

GraphBuilder::GraphBuilder(const BatchShape& shape, DType dtype) : shape_(shape), dtype_(dtype) {
  graph_.batch = shape.batch;
  graph_.seq = shape.seq;
  graph_.dtype = dtype;
  graph_.tokens = input();
  graph_.targets = input();
  begin_unit("root");
}

void GraphBuilder::begin_unit(std::string name) {
  graph_.units.push_back({.name = std::move(name)});
  unit_ = {static_cast<std::uint32_t>(graph_.units.size() - 1)};
}

TensorId GraphBuilder::input() {
  return graph_.add_tensor({.role = Role::input, .dtype = DType::i32, .elements = rows()});
}

TensorId GraphBuilder::activation(std::int64_t elements) {
  return graph_.add_tensor({.role = Role::activation, .dtype = dtype_, .elements = elements});
}

TensorId GraphBuilder::parameter(std::string name, std::vector<std::int64_t> shape, const Initial& initial) {
  const ParameterId id{static_cast<std::uint32_t>(graph_.parameters.size())};
  graph_.parameters.push_back(
      {.name = std::move(name), .shape = std::move(shape), .unit = unit_, .initial = initial, .gradient = dtype_});
  Parameter& added = graph_.parameters.back();
  added.value =
      graph_.add_tensor({.role = Role::parameter, .dtype = dtype_, .elements = added.elements(), .parameter = id});
  graph_.units[unit_.value].parameters.push_back(id);
  return added.value;
}

Operator& GraphBuilder::op(const std::string& path, OpKind kind, const Sizes& sizes, std::vector<TensorId> inputs,
                           std::vector<TensorId> outputs, float scalar) {
  graph_.operators.push_back({.kind = kind,
                              .phase = Phase::forward,
                              .unit = unit_,
                              .module = graph_.add_module(path),
                              .sizes = sizes,
                              .inputs = std::move(inputs),
                              .outputs = std::move(outputs),
                              .scalar = scalar});
  return graph_.operators.back();
}

TensorId GraphBuilder::embedding(const std::string& path, TensorId table, TensorId positions, std::int64_t vocab,
                                 std::int64_t width) {
  const TensorId x = activation(rows() * width);
  op(path, OpKind::embedding, {.rows = rows(), .cols = width, .inner = vocab, .seq = shape_.seq},
     {graph_.tokens, table, positions}, {x});
  return x;
}

TensorId GraphBuilder::linear(const std::string& name, TensorId x, std::int64_t in, std::int64_t out, bool bias,
                              double stddev) {
  const TensorId weight = parameter(name + ".weight", {out, in}, {.stddev = stddev});
  const TensorId added = bias ? parameter(name + ".bias", {out}, {}) : TensorId::none();
  const std::int64_t in_rows = graph_[x].elements / in;
  const TensorId y = activation(in_rows * out);
  op(name, OpKind::linear, {.rows = in_rows, .cols = out, .inner = in}, {x, weight, added}, {y});
  return y;
}

TensorId GraphBuilder::add(const std::string& path, TensorId a, TensorId b) {
  const std::int64_t elements = graph_[a].elements;
  const TensorId sum = activation(elements);
  op(path, OpKind::add, {.rows = rows(), .cols = elements / rows()}, {a, b}, {sum});
  return sum;
}

TensorId GraphBuilder::layer_norm(const std::string& name, TensorId x, std::int64_t width, double epsilon, bool bias) {
  const TensorId gain = parameter(name + ".weight", {width}, {.constant = 1});
  const TensorId shift = bias ? parameter(name + ".bias", {width}, {}) : TensorId::none();
  const std::int64_t norms = graph_[x].elements / width;
  const TensorId y = activation(norms * width), mean = activation(norms), rstd = activation(norms);
  op(name, OpKind::layer_norm, {.rows = norms, .cols = width}, {x, gain, shift}, {y, mean, rstd},
     static_cast<float>(epsilon));
  return y;
}

TensorId GraphBuilder::rms_norm(const std::string& name, TensorId x, std::int64_t width, double epsilon) {
  const TensorId gain = parameter(name + ".weight", {width}, {.constant = 1});
  const std::int64_t norms = graph_[x].elements / width;
  const TensorId y = activation(norms * width), rstd = activation(norms);
  op(name, OpKind::rms_norm, {.rows = norms, .cols = width}, {x, gain}, {y, rstd}, static_cast<float>(epsilon));
  return y;
}

TensorId GraphBuilder::elementwise(const std::string& path, OpKind kind, std::int64_t cols,
                                   std::vector<TensorId> operands) {
  const std::int64_t elements = graph_[operands.front()].elements;
  const TensorId y = activation(elements);
  op(path, kind, {.rows = elements / cols, .cols = cols}, std::move(operands), {y});
  return y;
}

TensorId GraphBuilder::attention(const std::string& path, OpKind kind, const Sizes& sizes,
                                 std::vector<TensorId> operands, float scalar) {
  const std::int64_t queries = sizes.batch * sizes.seq;
  const TensorId y = activation(queries * sizes.heads * sizes.inner), log_sum_exp = activation(queries * sizes.heads);
  op(path, kind, sizes, std::move(operands), {y, log_sum_exp}, scalar);
  return y;
}

void GraphBuilder::loss(TensorId x, TensorId weight, std::int64_t width, std::int64_t vocab) {
  const TensorId logits = activation(rows() * vocab);
  op("lm_head", OpKind::linear, {.rows = rows(), .cols = vocab, .inner = width}, {x, weight, TensorId::none()},
     {logits});
  cross_entropy(logits, vocab);
}

void GraphBuilder::cross_entropy(TensorId logits, std::int64_t classes) {
  const std::int64_t count = graph_[logits].elements / classes;
  const TensorId log_sum_exp = activation(count);
  graph_.loss = graph_.add_tensor({.role = Role::activation, .dtype = DType::f64, .elements = 2});
  op("loss", OpKind::cross_entropy, {.rows = count, .cols = classes}, {logits, graph_.targets},
     {graph_.loss, log_sum_exp});
}

}  // namespace foreshard::model
