#include "model/operator.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "model/attention_pairs.hpp"

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
    "opaque_backward", "first_token_backward", "scale",
    // of packed weights
    "dequantise",
    // of DeepViT
    "reattention", "reattention_backward"};
static_assert(std::size(names) == static_cast<std::size_t>(OpKind::count_));

double elements(const Sizes& s) { return static_cast<double>(s.rows) * static_cast<double>(s.cols); }

double matrix_product(const Sizes& s) { return 2.0 * elements(s) * static_cast<double>(s.inner); }

/// Two products of [seq, width] by [width, seq], of which the mask leaves these pairs.
double causal_attention(const Sizes& s) {
  return 4.0 * static_cast<double>(s.batch * s.heads * s.inner) * causal_pairs(s.seq, s.rows);
}

/// The same two products with all `rows` keys.
double full_attention(const Sizes& s) {
  return 4.0 * static_cast<double>(s.batch * s.heads * s.inner) * static_cast<double>(s.seq) *
         static_cast<double>(s.rows);
}

/// Of each query with each key and in each head: a product with q and k and one with v; a row of the mixing; the norm.
double reattention(const Sizes& s) {
  const auto pairs = static_cast<double>(s.batch * s.seq) * static_cast<double>(s.rows * s.heads);
  return pairs * static_cast<double>(4 * s.inner + 2 * s.heads + 8);
}
/// As attention's backward; the mixing again, and its two gradients; the norm again, and its backward.
double reattention_backward(const Sizes& s) {
  const auto pairs = static_cast<double>(s.batch * s.seq) * static_cast<double>(s.rows * s.heads);
  return pairs * static_cast<double>(10 * s.inner + 6 * s.heads + 8 + 14);
}

using Flops = double (*)(const Sizes&);

/// So many for each element of the result, or of a shard.
template <int count>
double per_element(const Sizes& s) {
  return count * elements(s);
}
template <int count>
double per_row(const Sizes& s) {
  return count * static_cast<double>(s.rows);
}

/// Of an opaque operator, and of its backward: what its profile says of a sample.
double profiled(const Sizes& s) { return static_cast<double>(s.rows) * static_cast<double>(s.inner); }
double profiled_backward(const Sizes& s) { return static_cast<double>(s.rows) * static_cast<double>(s.seq); }

/// Recomputed scores, dP, dV, dQ, dK in place of two products.
template <Flops forward>
double attention_backward(const Sizes& s) {
  return 2.5 * forward(s);
}

struct Count {
  OpKind kind;
  Flops flops;
};

constexpr Count products[] = {{OpKind::linear, matrix_product},
                              {OpKind::linear_input_grad, matrix_product},
                              {OpKind::linear_weight_grad, matrix_product},
                              {OpKind::opaque, profiled},
                              {OpKind::opaque_backward, profiled_backward},
                              {OpKind::attention, causal_attention},
                              {OpKind::attention_backward, attention_backward<causal_attention>},
                              {OpKind::full_attention, full_attention},
                              {OpKind::full_attention_backward, attention_backward<full_attention>},
                              {OpKind::reattention, reattention},
                              {OpKind::reattention_backward, reattention_backward}};

constexpr Count norms[] = {
    {OpKind::layer_norm, per_element<8>},           {OpKind::add_layer_norm, per_element<9>},
    {OpKind::layer_norm_backward, per_element<14>}, {OpKind::rms_norm, per_element<4>},
    {OpKind::add_rms_norm, per_element<5>},         {OpKind::rms_norm_backward, per_element<10>}};

constexpr Count element_by_element[] = {{OpKind::rotary, per_element<3>},
                                        {OpKind::rotary_backward, per_element<3>},
                                        {OpKind::swiglu, per_element<6>},
                                        {OpKind::swiglu_backward, per_element<12>},
                                        {OpKind::geglu, per_element<11>},
                                        {OpKind::geglu_backward, per_element<18>},
                                        {OpKind::gelu, per_element<10>},
                                        {OpKind::gelu_exact, per_element<10>},
                                        {OpKind::gelu_backward, per_element<16>},
                                        {OpKind::gelu_exact_backward, per_element<16>},
                                        {OpKind::relu, per_element<1>},
                                        {OpKind::relu_backward, per_element<1>},
                                        {OpKind::add, per_element<1>},
                                        {OpKind::scale, per_element<1>},
                                        {OpKind::dequantise, per_element<1>},
                                        {OpKind::dropout, per_element<1>}};

constexpr Count tokens_and_losses[] = {
    {OpKind::cross_entropy, per_element<3>},          {OpKind::cross_entropy_backward, per_element<3>},
    {OpKind::image_tokens, per_element<1>},           {OpKind::image_tokens_backward, per_element<1>},
    {OpKind::relative_bias_backward, per_element<1>}, {OpKind::embedding, per_element<1>},
    {OpKind::embedding_backward, per_element<2>},     {OpKind::linear_bias_grad, per_element<1>}};

constexpr Count of_shards[] = {{OpKind::grad_norm, per_row<2>},    {OpKind::adamw, per_row<14>},
                               {OpKind::adam, per_row<14>},        {OpKind::sgd, per_row<5>},
                               {OpKind::sgd_momentum, per_row<7>}, {OpKind::lion, per_row<11>}};

/// By kind; none where nothing is computed.
constexpr auto counts = [] {
  std::array<Flops, static_cast<std::size_t>(OpKind::count_)> all{};
  for (const std::span<const Count> family :
       {std::span<const Count>(products), std::span<const Count>(norms), std::span<const Count>(element_by_element),
        std::span<const Count>(tokens_and_losses), std::span<const Count>(of_shards)})
    for (const Count& count : family) all[static_cast<std::size_t>(count.kind)] = count.flops;
  return all;
}();

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

double flops(OpKind kind, const Sizes& sizes) {
  const Flops counted = counts[static_cast<std::size_t>(kind)];
  return counted ? counted(sizes) : 0;
}

}  // namespace foreshard::model
