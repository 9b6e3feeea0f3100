#include <algorithm>
#include <span>

#include "base/error.hpp"
#include "plan/build.hpp"

namespace foreshard::plan {
namespace {

using model::Graph;
using model::Operator;
using model::Role;
using model::Tensor;
using model::TensorId;

/// Reverse-mode differentiation: appends the backward operators of a forward graph, last operator first. Every tensor
/// is written once, except parameter gradients, to which a second use of the parameter adds. What no trainable
/// parameter needs is not computed: no gradient of a frozen parameter, and none of an activation that depends on frozen
/// parameters alone.
class Differentiator {
 public:
  explicit Differentiator(const Graph& forward)
      : graph_(forward), gradient_(forward.tensors.size()), needed_(forward.tensors.size()) {}

  Graph run() {
    const std::vector<Operator> forward = graph_.operators;
    find_needed();
    for (auto op = forward.rbegin(); op != forward.rend(); ++op) backward(*op);
    return std::move(graph_);
  }

 private:
  void find_needed() {
    for (const model::Parameter& parameter : graph_.parameters)
      needed_[parameter.value.value] = parameter.has_gradient();
    for (const Operator& op : graph_.operators)
      if (std::ranges::any_of(op.inputs, [&](TensorId input) { return needs(input); }))
        for (const TensorId output : op.outputs) needed_[output.value] = true;
  }

  /// True if a gradient of the tensor is wanted.
  bool needs(TensorId tensor) const { return tensor.valid() && needed_[tensor.value]; }
  TensorId if_needed(TensorId tensor) const { return needs(tensor) ? tensor : TensorId::none(); }

  void backward(const Operator& op) {
    if (!needs(op.outputs[0])) return;
    switch (op.kind) {
      case OpKind::cross_entropy:
        return cross_entropy(op);
      case OpKind::linear:
        return linear(op);
      case OpKind::layer_norm:
        return layer_norm(op);
      case OpKind::rms_norm:
        return rms_norm(op);
      case OpKind::attention:
        return attention(op, OpKind::attention_backward);
      case OpKind::full_attention:
        return attention(op, OpKind::full_attention_backward);
      case OpKind::reattention:
        return reattention(op);
      case OpKind::rotary:
        return contribute(op.inputs[0], emit(op, OpKind::rotary_backward, {of(op.outputs[0])}, like(op.inputs[0])), op);
      case OpKind::swiglu:
        return all_inputs(op, OpKind::swiglu_backward, {of(op.outputs[0]), op.inputs[0], op.inputs[1]});
      case OpKind::geglu:
        return all_inputs(op, OpKind::geglu_backward, {of(op.outputs[0]), op.inputs[0], op.inputs[1]});
      case OpKind::gelu:
        return activation(op, OpKind::gelu_backward, op.inputs[0]);
      case OpKind::gelu_exact:
        return activation(op, OpKind::gelu_exact_backward, op.inputs[0]);
      case OpKind::relu:
        return activation(op, OpKind::relu_backward, op.outputs[0]);
      case OpKind::first_token:
        return contribute(op.inputs[0], emit(op, OpKind::first_token_backward, {of(op.outputs[0])}, like(op.inputs[0])),
                          op);
      case OpKind::relative_bias:
        return emit_parameter_grads(op, OpKind::relative_bias_backward, {of(op.outputs[0])}, {op.inputs[0]});
      case OpKind::image_tokens:
        return image_tokens(op);
      case OpKind::opaque:
        return opaque(op);
      case OpKind::dropout:
      case OpKind::scale:
      case OpKind::cast:
        return contribute(op.inputs[0], emit(op, op.kind, {of(op.outputs[0])}, like(op.inputs[0])), op);
      case OpKind::add:
        for (const TensorId input : op.inputs)
          if (needs(input)) contribute(input, of(op.outputs[0]), op);
        return;
      case OpKind::embedding:
        return embedding(op);
      default:
        FORESHARD_EXPECT(false, std::string("no derivative for operator ") + std::string(name_of(op.kind)));
    }
  }

  void cross_entropy(const Operator& op) {
    contribute(
        op.inputs[0],
        emit(op, OpKind::cross_entropy_backward, {op.inputs[0], op.inputs[1], op.outputs[1]}, like(op.inputs[0])), op);
  }

  void linear(const Operator& op) {
    const TensorId x = op.inputs[0], weight = op.inputs[1], bias = op.inputs[2], dy = of(op.outputs[0]);
    if (needs(weight)) emit_parameter_grads(op, OpKind::linear_weight_grad, {dy, x}, {weight});
    if (needs(bias)) emit_parameter_grads(op, OpKind::linear_bias_grad, {dy}, {bias});
    if (needs(x)) contribute(x, emit(op, OpKind::linear_input_grad, {dy, weight}, like(x)), op);
  }

  void activation(const Operator& op, OpKind kind) {
    contribute(op.inputs[0], emit(op, kind, {of(op.outputs[0]), op.inputs[0]}, like(op.inputs[0])), op);
  }

  void layer_norm(const Operator& op) {
    const TensorId x = op.inputs[0], gain = op.inputs[1], bias = op.inputs[2];
    const TensorId dx = emit(op, OpKind::layer_norm_backward,
                             {of(op.outputs[0]), x, gain, op.outputs[1], op.outputs[2], TensorId::none()},
                             needs(x) ? like(x) : TensorId::none());
    add_parameter_grads(graph_.operators.back(), {if_needed(gain), if_needed(bias)});
    if (dx.valid()) contribute(x, dx, op);
  }

  void rms_norm(const Operator& op) {
    const TensorId x = op.inputs[0], gain = op.inputs[1];
    const TensorId dx =
        emit(op, OpKind::rms_norm_backward, {of(op.outputs[0]), x, gain, op.outputs[1], TensorId::none()},
             needs(x) ? like(x) : TensorId::none());
    add_parameter_grads(graph_.operators.back(), {if_needed(gain)});
    if (dx.valid()) contribute(x, dx, op);
  }

  void activation(const Operator& op, OpKind kind, TensorId read) {
    contribute(op.inputs[0], emit(op, kind, {of(op.outputs[0]), read}, like(op.inputs[0])), op);
  }

  void image_tokens(const Operator& op) {
    const TensorId patches = op.inputs[0];
    const TensorId grad =
        emit(op, OpKind::image_tokens_backward, {of(op.outputs[0])}, needs(patches) ? like(patches) : TensorId::none());
    add_parameter_grads(graph_.operators.back(), {if_needed(op.inputs[1]), if_needed(op.inputs[2])});
    if (grad.valid()) contribute(patches, grad, op);
  }

  void opaque(const Operator& op) {
    const TensorId x = op.inputs[0], weight = op.inputs[1];
    const TensorId kept = op.outputs.size() > 1 ? op.outputs[1] : TensorId::none();
    const TensorId dx =
        emit(op, OpKind::opaque_backward, {of(op.outputs[0]), weight, kept}, needs(x) ? like(x) : TensorId::none());
    add_parameter_grads(graph_.operators.back(), {if_needed(weight)});
    if (dx.valid()) contribute(x, dx, op);
  }

  void attention(const Operator& op, OpKind kind) {
    std::vector<TensorId> read{of(op.outputs[0])};
    read.insert(read.end(), op.inputs.begin(), op.inputs.end());
    read.insert(read.end(), op.outputs.begin(), op.outputs.end());
    all_inputs(op, kind, std::move(read));
  }

  void reattention(const Operator& op) {
    std::vector<TensorId> read{of(op.outputs[0])}, grads;
    read.insert(read.end(), op.inputs.begin(), op.inputs.end());
    read.push_back(op.outputs[1]);
    for (const TensorId input : std::span(op.inputs).first(3))
      grads.push_back(needs(input) ? like(input) : TensorId::none());
    Operator& made = append(op, OpKind::reattention_backward, std::move(read));
    made.outputs = grads;
    add_parameter_grads(made, {if_needed(op.inputs[3]), if_needed(op.inputs[4]), if_needed(op.inputs[5])});
    for (std::size_t i = 0; i < grads.size(); ++i)
      if (grads[i].valid()) contribute(op.inputs[i], grads[i], op);
  }

  /// An operator that makes the gradients of all inputs at once.
  void all_inputs(const Operator& op, OpKind kind, std::vector<TensorId> read) {
    std::vector<TensorId> grads;
    for (const TensorId input : op.inputs) grads.push_back(like(input));
    append(op, kind, std::move(read)).outputs = grads;
    for (std::size_t i = 0; i < grads.size(); ++i)
      if (needs(op.inputs[i])) contribute(op.inputs[i], grads[i], op);
  }

  void embedding(const Operator& op) {
    const TensorId dx = of(op.outputs[0]), tokens = op.inputs[0];
    const TensorId token_table = op.inputs[1], position_table = op.inputs[2];
    if (needs(position_table))
      emit_parameter_grads(op, OpKind::embedding_backward, {dx, tokens}, {TensorId::none(), position_table});
    if (needs(token_table))
      emit_parameter_grads(op, OpKind::embedding_backward, {dx, tokens}, {token_table, TensorId::none()});
  }

  /// The gradient of an activation that has been contributed to.
  TensorId of(TensorId tensor) const {
    FORESHARD_EXPECT(gradient_[tensor.value].valid(), "an operator's result has no gradient: is it used?");
    return gradient_[tensor.value];
  }

  TensorId like(TensorId tensor) {
    return graph_.add_tensor(
        {.role = Role::activation_grad, .dtype = graph_[tensor].dtype, .elements = graph_[tensor].elements});
  }

  /// Of an element-wise operator: rows are tokens, where that fits.
  Sizes sizes_of(TensorId tensor) const {
    const std::int64_t elements = graph_[tensor].elements, tokens = graph_[graph_.tokens].elements;
    if (elements % tokens != 0) return {.rows = elements, .cols = 1};
    return {.rows = tokens, .cols = elements / tokens};
  }

  Operator& append(const Operator& op, OpKind kind, std::vector<TensorId> inputs) {
    graph_.operators.push_back({.kind = kind,
                                .phase = Phase::backward,
                                .unit = op.unit,
                                .sizes = op.sizes,
                                .inputs = std::move(inputs),
                                .outputs = {},
                                .scalar = op.scalar,
                                .stream = op.stream});
    return graph_.operators.back();
  }

  TensorId emit(const Operator& op, OpKind kind, std::vector<TensorId> inputs, TensorId output) {
    append(op, kind, std::move(inputs)).outputs = {output};
    return output;
  }

  void emit_parameter_grads(const Operator& op, OpKind kind, std::vector<TensorId> inputs,
                            const std::vector<TensorId>& parameters) {
    add_parameter_grads(append(op, kind, std::move(inputs)), parameters);
  }

  /// Makes the gradients of `parameters` (absent ones stay absent) outputs of `op`: all of them start here, or all are
  /// added to.
  void add_parameter_grads(Operator& op, const std::vector<TensorId>& parameters) {
    for (const TensorId parameter : parameters) {
      if (parameter.valid()) {
        TensorId& gradient = gradient_[parameter.value];
        const bool again = gradient.valid();
        FORESHARD_EXPECT(op.outputs.empty() || !op.outputs.back().valid() || op.accumulate == again,
                         "an operator adds to one gradient and starts another");
        op.accumulate = again;
        if (!again) gradient = parameter_grad(parameter);
        op.outputs.push_back(gradient);
      } else {
        op.outputs.push_back(TensorId::none());
      }
    }
  }

  TensorId parameter_grad(TensorId parameter) {
    const Tensor value = graph_[parameter];
    return graph_.add_tensor({.role = Role::parameter_grad,
                              .dtype = graph_.parameters[value.parameter.value].gradient,
                              .elements = value.elements,
                              .parameter = value.parameter});
  }

  /// Adds `gradient` to what `tensor` has received so far.
  void contribute(TensorId tensor, TensorId gradient, const Operator& op) {
    TensorId& total = gradient_[tensor.value];
    if (!total.valid()) {
      total = gradient;
      return;
    }
    const TensorId sum = like(tensor);
    Operator& add = append(op, OpKind::add, {total, gradient});
    add.outputs = {sum};
    add.sizes = sizes_of(sum);
    total = sum;
  }

  Graph graph_;
  std::vector<TensorId> gradient_;  // by forward tensor
  std::vector<bool> needed_;        // by forward tensor
};

}  // namespace

Graph differentiate(const Graph& forward) { return Differentiator(forward).run(); }

}  // namespace foreshard::plan
