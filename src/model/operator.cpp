#include "model/operator.hpp"

#include <algorithm>
#include <iterator>

namespace foreshard::model {
namespace {

constexpr std::string_view names[] = {
    // forward
    "embedding", "layer_norm", "linear", "attention", "gelu", "add", "dropout", "cast", "cross_entropy",
    // backward
    "embedding_backward", "layer_norm_backward", "linear_input_grad", "linear_weight_grad", "linear_bias_grad",
    "attention_backward", "gelu_backward", "cross_entropy_backward",
    // made by lowering
    "add_layer_norm",
    // made by scheduling
    "load_batch", "zero_fill", "all_gather", "cast_shard", "fetch", "offload", "retain", "reduce_scatter", "all_reduce",
    "grad_norm", "sum_norm", "sum_loss", "adamw", "adam", "sgd", "sgd_momentum", "lion", "gather_norm",
    // of Llama's family
    "rms_norm", "rotary", "swiglu", "rms_norm_backward", "rotary_backward", "swiglu_backward", "add_rms_norm",
    // of MPT's family
    "gelu_exact", "gelu_exact_backward",
    // of T5, ViT and profiles
    "full_attention", "relative_bias", "relu", "geglu", "load_images", "image_tokens", "first_token", "opaque",
    "full_attention_backward", "relative_bias_backward", "relu_backward", "geglu_backward", "image_tokens_backward",
    "opaque_backward", "first_token_backward"};
static_assert(std::size(names) == static_cast<std::size_t>(OpKind::count_));

double elements(const Sizes& s) { return static_cast<double>(s.rows) * static_cast<double>(s.cols); }

double matrix_product(const Sizes& s) { return 2.0 * elements(s) * static_cast<double>(s.inner); }

/// Two products of [seq, width] by [width, seq], of which causal masking leaves (seq + 1) / 2 columns a row.
double causal_attention(const Sizes& s) {
  const auto seq = static_cast<double>(s.seq);
  return 4.0 * static_cast<double>(s.batch * s.heads * s.inner) * seq * (seq + 1) / 2;
}

/// The same two products with all `rows` keys.
double full_attention(const Sizes& s) {
  return 4.0 * static_cast<double>(s.batch * s.heads * s.inner) * static_cast<double>(s.seq) *
         static_cast<double>(s.rows);
}

}  // namespace

std::string_view name_of(OpKind kind) { return names[static_cast<std::size_t>(kind)]; }

std::optional<OpKind> find_op_kind(std::string_view name) {
  const auto found = std::ranges::find(names, name);
  return found == std::end(names) ? std::nullopt : std::optional(static_cast<OpKind>(found - std::begin(names)));
}

bool is_update(OpKind kind) { return kind >= OpKind::adamw && kind <= OpKind::lion; }

int moment_count(OpKind update) {
  if (update == OpKind::adamw || update == OpKind::adam) return 2;
  return update == OpKind::sgd_momentum || update == OpKind::lion ? 1 : 0;
}

double flops(OpKind kind, const Sizes& s) {
  switch (kind) {
    case OpKind::linear:
    case OpKind::linear_input_grad:
    case OpKind::linear_weight_grad:
      return matrix_product(s);
    case OpKind::attention:
      return causal_attention(s);
    case OpKind::attention_backward:
      return 2.5 * causal_attention(s);  // recomputed scores, dP, dV, dQ, dK
    case OpKind::opaque:
      return static_cast<double>(s.rows) * static_cast<double>(s.inner);
    case OpKind::opaque_backward:
      return static_cast<double>(s.rows) * static_cast<double>(s.seq);
    case OpKind::full_attention:
      return full_attention(s);
    case OpKind::full_attention_backward:
      return 2.5 * full_attention(s);
    case OpKind::layer_norm:
      return 8 * elements(s);
    case OpKind::add_layer_norm:
      return 9 * elements(s);
    case OpKind::layer_norm_backward:
      return 14 * elements(s);
    case OpKind::rms_norm:
      return 4 * elements(s);
    case OpKind::add_rms_norm:
      return 5 * elements(s);
    case OpKind::rms_norm_backward:
      return 10 * elements(s);
    case OpKind::rotary:
    case OpKind::rotary_backward:
      return 3 * elements(s);
    case OpKind::swiglu:
      return 6 * elements(s);
    case OpKind::swiglu_backward:
      return 12 * elements(s);
    case OpKind::geglu:
      return 11 * elements(s);
    case OpKind::geglu_backward:
      return 18 * elements(s);
    case OpKind::gelu:
    case OpKind::gelu_exact:
      return 10 * elements(s);
    case OpKind::gelu_backward:
    case OpKind::gelu_exact_backward:
      return 16 * elements(s);
    case OpKind::cross_entropy:
      return 3 * elements(s);
    case OpKind::cross_entropy_backward:
      return 3 * elements(s);
    case OpKind::relu:
    case OpKind::relu_backward:
    case OpKind::image_tokens:
    case OpKind::image_tokens_backward:
    case OpKind::relative_bias_backward:
    case OpKind::embedding:
    case OpKind::add:
    case OpKind::dropout:
    case OpKind::linear_bias_grad:
      return elements(s);
    case OpKind::embedding_backward:
      return 2 * elements(s);
    case OpKind::grad_norm:
      return 2 * static_cast<double>(s.rows);
    case OpKind::adamw:
    case OpKind::adam:
      return 14 * static_cast<double>(s.rows);
    case OpKind::sgd:
      return 5 * static_cast<double>(s.rows);
    case OpKind::sgd_momentum:
      return 7 * static_cast<double>(s.rows);
    case OpKind::lion:
      return 11 * static_cast<double>(s.rows);
    default:
      return 0;
  }
}

}  // namespace foreshard::model
