#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/ids.hpp"
#include "model/operator.hpp"
#include "model/packing.hpp"

namespace foreshard::model {

using TensorId = Id<struct TensorTag>;
using ParameterId = Id<struct ParameterTag>;
using UnitId = Id<struct UnitTag>;
using ModuleId = Id<struct ModuleTag>;

enum class Role : std::uint8_t { input, parameter, activation, activation_grad, parameter_grad };
enum class Phase : std::uint8_t { forward, backward, update };

/// A tensor of one micro-batch on one rank. Contiguous, row-major.
struct Tensor {
  Role role = Role::activation;
  DType dtype = DType::f32;
  std::int64_t elements = 0;
  ParameterId parameter;  ///< of a parameter and its gradient
  TensorId shares;        ///< the tensor whose memory this one overwrites, if it is computed in place
};

/// How a parameter starts: normal(0, stddev), or all `constant` where stddev is 0.
struct Initial {
  double stddev = 0;
  double constant = 0;
};

struct Parameter {
  std::string name;                 ///< e.g. "h.3.attn.c_attn.weight", as in Hugging Face's GPT-2
  std::vector<std::int64_t> shape;  ///< weights are [out features, in features]
  UnitId unit;
  Initial initial;
  TensorId value;                   ///< the tensor that forward reads
  DType gradient = DType::f32;      ///< the type its gradient has until it is reduced
  bool trainable = true;            ///< else it has no gradient and no optimizer state
  bool idle = false;                ///< trainable, but without a gradient in the steps that this graph is of
  Packing packing = Packing::none;  ///< of a frozen matrix
  std::int64_t elements() const;
  bool is_packed() const { return packing != Packing::none; }
  std::int64_t packed_words() const { return model::packed_words(packing, elements()); }
  bool has_gradient() const { return trainable && !idle; }
};

/// One computation. `outputs` that are parameter gradients are added to if `accumulate` is set, else overwritten.
struct Operator {
  OpKind kind;
  Phase phase = Phase::forward;
  UnitId unit;
  ModuleId module;  ///< of a forward operator
  Sizes sizes;
  std::vector<TensorId> inputs, outputs;  ///< an absent optional operand is TensorId::none()
  float scalar = 0;                       ///< the kind's constant: epsilon, or drop probability
  std::uint32_t stream = 0;               ///< which dropout this is
  bool accumulate = false;
};

/// A set of parameters that is gathered, freed and reduced together. Unit 0 is the root.
struct Unit {
  std::string name;  ///< "root", "u0", "u1", …
  std::vector<ParameterId> parameters;
  bool replicated = false;  ///< every rank holds it whole, however other units are sharded
};

/// What one micro-batch computes, operators in an order of execution. Knows no rank, no device, no clock.
struct Graph {
  std::vector<Tensor> tensors;
  std::vector<Parameter> parameters;
  std::vector<Operator> operators;
  std::vector<Unit> units;
  std::vector<std::string> modules;  ///< paths, e.g. "h.3.attn.c_attn"; a module lies within those that begin its path
  TensorId tokens, targets;          ///< i32, one per row; of images one target for each
  TensorId loss;                     ///< f64[2]: sum of the token losses, number of valid tokens
  std::int64_t batch = 0, seq = 0;
  DType dtype = DType::f32;  ///< in which parameters are kept and updated, and statistics are

  TensorId add_tensor(const Tensor& tensor);
  /// The module of that path, added if it is new.
  ModuleId add_module(const std::string& path);
  const Tensor& operator[](TensorId id) const { return tensors[id.value]; }
  Tensor& operator[](TensorId id) { return tensors[id.value]; }
  std::int64_t parameter_count() const;
};

constexpr UnitId root_unit{0};

}  // namespace foreshard::model
