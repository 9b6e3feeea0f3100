#include "engine/kernel_calls.hpp"

#include <cmath>
#include <span>

#include "engine/products.hpp"

namespace foreshard::engine {
namespace {

using Call = KernelCall;
using plan::OpKind;

struct Entry {
  OpKind kind;
  Kernel kernel;
};

kernels::Rows rows(const Call& c) { return {.rows = c.op.sizes.rows, .cols = c.op.sizes.cols}; }
std::int64_t count(const Call& c) { return c.op.sizes.rows * c.op.sizes.cols; }

// Products.

void product(const Call& c) { c.kernels.matmul(*product_of(c.op), c.in[0], c.in[1], c.in[2], c.out[0]); }
void bias_grad(const Call& c) { c.kernels.bias_grad(rows(c), c.op.accumulate, c.in[0], c.out[0]); }

constexpr Entry products[] = {{OpKind::linear, product},
                              {OpKind::linear_input_grad, product},
                              {OpKind::linear_weight_grad, product},
                              {OpKind::linear_bias_grad, bias_grad}};

// Norms.

void layer_norm(const Call& c) {
  c.kernels.layer_norm(rows(c), c.op.scalar, c.in[0], {}, c.in[1], c.in[2], {}, c.out[0], c.out[1], c.out[2]);
}
void add_layer_norm(const Call& c) {
  c.kernels.layer_norm(rows(c), c.op.scalar, c.in[0], c.in[1], c.in[2], c.in[3], c.out[0], c.out[1], c.out[2],
                       c.out[3]);
}
void layer_norm_backward(const Call& c) {
  c.kernels.layer_norm_backward(rows(c), c.op.accumulate, c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], c.in[5],
                                c.out[0], c.out[1], c.out[2]);
}
void rms_norm(const Call& c) { c.kernels.rms_norm(rows(c), c.op.scalar, c.in[0], {}, c.in[1], {}, c.out[0], c.out[1]); }
void add_rms_norm(const Call& c) {
  c.kernels.rms_norm(rows(c), c.op.scalar, c.in[0], c.in[1], c.in[2], c.out[0], c.out[1], c.out[2]);
}
void rms_norm_backward(const Call& c) {
  c.kernels.rms_norm_backward(rows(c), c.op.accumulate, c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], c.out[0],
                              c.out[1]);
}

constexpr Entry norms[] = {{OpKind::layer_norm, layer_norm},
                           {OpKind::add_layer_norm, add_layer_norm},
                           {OpKind::layer_norm_backward, layer_norm_backward},
                           {OpKind::rms_norm, rms_norm},
                           {OpKind::add_rms_norm, add_rms_norm},
                           {OpKind::rms_norm_backward, rms_norm_backward}};

// Attention. Queries, keys and values are one operand or three; the last two that backward reads are results.

bool is_full(OpKind kind) { return kind == OpKind::full_attention || kind == OpKind::full_attention_backward; }

}  // namespace

kernels::Attention attention_of(const plan::Op& op, bool biased) {
  const plan::Sizes& s = op.sizes;
  const bool full = is_full(op.kind);
  return {.batch = s.batch,
          .seq = s.seq,
          .heads = s.heads,
          .width = s.inner,
          .key_heads = s.cols / s.inner,
          .alibi = full ? 0 : op.scalar,
          .causal = !full,
          .scaled = full ? op.scalar != 0 : !biased,
          .window = full ? 0 : s.rows};
}

namespace {

void attention(const Call& c) {
  const kernels::Attention shape = attention_of(c.op, c.in[3].data != nullptr);
  c.kernels.attention(shape, c.in[0], c.in[1], c.in[2], c.in[3], c.out[0], c.out[1]);
}

void attention_backward(const Call& c) {
  const std::size_t y = c.op.input_count - 2U, lse = y + 1;
  const auto operand = [&](std::size_t index) { return index < y ? c.in[index] : kernels::Const{}; };
  const kernels::Attention shape = attention_of(c.op, operand(4).data != nullptr);
  c.kernels.attention_backward(shape, c.in[0], c.in[1], operand(2), operand(3), operand(4), c.in[y], c.in[lse],
                               c.out[0], c.out[1], c.out[2], c.out[3]);
}

kernels::Reattention reattention_of(const Call& c) {
  const plan::Sizes& s = c.op.sizes;
  return {.batch = s.batch, .seq = s.seq, .heads = s.heads, .width = s.inner, .epsilon = c.op.scalar};
}
void reattention(const Call& c) {
  c.kernels.reattention(reattention_of(c), c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], c.in[5], c.out[0], c.out[1]);
}
void reattention_backward(const Call& c) {
  c.kernels.reattention_backward(reattention_of(c), c.op.accumulate, c.in[0], c.in[1], c.in[2], c.in[3], c.in[4],
                                 c.in[5], c.in[6], c.in[7], c.out[0], c.out[1], c.out[2], c.out[3], c.out[4], c.out[5]);
}

kernels::Rotary rotary_of(const Call& c) {
  const plan::Sizes& s = c.op.sizes;
  return {.rows = s.rows,
          .heads = s.cols / s.inner,
          .width = s.inner,
          .seq = s.seq,
          .base = static_cast<double>(c.op.scalar),
          .back = c.op.kind == OpKind::rotary_backward};
}
void rotary(const Call& c) { c.kernels.rotary(rotary_of(c), c.in[0], c.out[0]); }

kernels::RelativeBias relative_bias_of(const Call& c) {
  const plan::Sizes& s = c.op.sizes;
  return {.heads = s.cols,
          .seq = (s.rows + 1) / 2,
          .buckets = s.inner,
          .max_distance = s.seq,
          .both_ways = c.op.scalar != 0};
}
void relative_bias(const Call& c) { c.kernels.relative_bias(relative_bias_of(c), c.in[0], c.out[0]); }
void relative_bias_backward(const Call& c) {
  c.kernels.relative_bias_backward(relative_bias_of(c), c.op.accumulate, c.in[0], c.out[0]);
}

constexpr Entry attentions[] = {{OpKind::attention, attention},
                                {OpKind::attention_backward, attention_backward},
                                {OpKind::full_attention, attention},
                                {OpKind::full_attention_backward, attention_backward},
                                {OpKind::reattention, reattention},
                                {OpKind::reattention_backward, reattention_backward},
                                {OpKind::rotary, rotary},
                                {OpKind::rotary_backward, rotary},
                                {OpKind::relative_bias, relative_bias},
                                {OpKind::relative_bias_backward, relative_bias_backward}};

// Element by element.

template <void (kernels::Backend::*kernel)(std::int64_t, kernels::Const, kernels::Mut)>
void of_one(const Call& c) {
  (c.kernels.*kernel)(count(c), c.in[0], c.out[0]);
}
template <void (kernels::Backend::*kernel)(std::int64_t, kernels::Const, kernels::Const, kernels::Mut)>
void of_two(const Call& c) {
  (c.kernels.*kernel)(count(c), c.in[0], c.in[1], c.out[0]);
}
template <void (kernels::Backend::*kernel)(std::int64_t, kernels::Const, kernels::Const, kernels::Const, kernels::Mut,
                                           kernels::Mut)>
void of_gate(const Call& c) {
  (c.kernels.*kernel)(count(c), c.in[0], c.in[1], c.in[2], c.out[0], c.out[1]);
}
void scale(const Call& c) {
  c.kernels.scale(count(c), 1 / std::sqrt(static_cast<double>(c.op.sizes.cols)), c.in[0], c.out[0]);
}
void cast(const Call& c) { c.kernels.cast(count(c), false, c.in[0], c.out[0]); }

using kernels::Backend;

constexpr Entry element_by_element[] = {{OpKind::gelu, of_one<&Backend::gelu>},
                                        {OpKind::gelu_backward, of_two<&Backend::gelu_backward>},
                                        {OpKind::gelu_exact, of_one<&Backend::gelu_exact>},
                                        {OpKind::gelu_exact_backward, of_two<&Backend::gelu_exact_backward>},
                                        {OpKind::relu, of_one<&Backend::relu>},
                                        {OpKind::relu_backward, of_two<&Backend::relu_backward>},
                                        {OpKind::swiglu, of_two<&Backend::swiglu>},
                                        {OpKind::swiglu_backward, of_gate<&Backend::swiglu_backward>},
                                        {OpKind::geglu, of_two<&Backend::geglu>},
                                        {OpKind::geglu_backward, of_gate<&Backend::geglu_backward>},
                                        {OpKind::add, of_two<&Backend::add>},
                                        {OpKind::scale, scale},
                                        {OpKind::cast, cast}};

// Tables and tokens.

kernels::Embedding embedding_of(const Call& c) {
  const plan::Sizes& s = c.op.sizes;
  return {.rows = s.rows, .cols = s.cols, .vocab = s.inner, .seq = s.seq, .shifted = c.op.scalar != 0};
}
void embedding(const Call& c) { c.kernels.embedding(embedding_of(c), c.in[0], c.in[1], c.in[2], c.out[0]); }

kernels::ImageTokens image_tokens_of(const Call& c) {
  const plan::Sizes& s = c.op.sizes;
  return {.images = s.rows / s.seq, .seq = s.seq, .cols = s.cols};
}
void image_tokens(const Call& c) { c.kernels.image_tokens(image_tokens_of(c), c.in[0], c.in[1], c.in[2], c.out[0]); }
void image_tokens_backward(const Call& c) {
  c.kernels.image_tokens_backward(image_tokens_of(c), c.op.accumulate, c.in[0], c.out[0], c.out[1], c.out[2]);
}

/// Their rows are images.
kernels::ImageTokens sequences_of(const Call& c) {
  const plan::Sizes& s = c.op.sizes;
  return {.images = s.rows, .seq = s.seq, .cols = s.cols};
}
void first_token(const Call& c) { c.kernels.first_token(sequences_of(c), c.in[0], c.out[0]); }
void first_token_backward(const Call& c) { c.kernels.first_token_backward(sequences_of(c), c.in[0], c.out[0]); }

constexpr Entry tokens[] = {{OpKind::embedding, embedding},
                            {OpKind::image_tokens, image_tokens},
                            {OpKind::image_tokens_backward, image_tokens_backward},
                            {OpKind::first_token, first_token},
                            {OpKind::first_token_backward, first_token_backward}};

constexpr auto all = [] {
  std::array<Kernel, static_cast<std::size_t>(OpKind::count_)> by_kind{};
  for (const auto family :
       {std::span<const Entry>(products), std::span<const Entry>(norms), std::span<const Entry>(attentions),
        std::span<const Entry>(element_by_element), std::span<const Entry>(tokens)})
    for (const Entry& entry : family) by_kind[static_cast<std::size_t>(entry.kind)] = entry.kernel;
  return by_kind;
}();

}  // namespace

Kernel kernel_of(OpKind kind) { return all[static_cast<std::size_t>(kind)]; }

}  // namespace foreshard::engine
