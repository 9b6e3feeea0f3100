#include "engine/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "base/exact_sum.hpp"
#include "engine/products.hpp"

namespace foreshard::engine {
namespace {

using plan::Op;
using plan::Operand;
using plan::OpKind;
using plan::Sizes;

static_assert(kernels::ExactSum::words == exact_sum_words);

kernels::Rows rows_of(const Sizes& s) { return {.rows = s.rows, .cols = s.cols}; }
kernels::Attention attention_of(const Sizes& s) {
  return {.batch = s.batch, .seq = s.seq, .heads = s.heads, .width = s.inner};
}
kernels::Embedding embedding_of(const Sizes& s) {
  return {.rows = s.rows, .cols = s.cols, .vocab = s.inner, .seq = s.seq};
}
std::int64_t count_of(const Sizes& s) { return s.rows * s.cols; }

}  // namespace

void* Dispatch::bytes(const Operand& operand) {
  if (!operand.present()) return nullptr;
  const plan::Buffer& buffer = plan_.buffers[operand.buffer.value];
  FORESHARD_EXPECT(operand.offset_bytes + operand.size_bytes <= buffer.size_bytes,
                   "an operand reaches beyond its buffer");
  return arena_.at(buffer.offset_bytes, buffer.size_bytes) + operand.offset_bytes;
}

kernels::Const Dispatch::in(const Op& op, std::size_t index) {
  const Operand& operand = plan_.inputs(op)[index];
  return {bytes(operand), operand.dtype};
}

kernels::Mut Dispatch::out(const Op& op, std::size_t index) {
  const Operand& operand = plan_.outputs(op)[index];
  return {bytes(operand), operand.dtype};
}

void Dispatch::run(const Op& op, const exec::StepContext& context, int micro_batch) {
  const Sizes& s = op.sizes;
  const auto i = [&](std::size_t index) { return in(op, index); };
  const auto o = [&](std::size_t index) { return out(op, index); };
  kernels::Backend& k = kernels_;
  switch (op.kind) {
    case OpKind::embedding:
      return k.embedding(embedding_of(s), i(0), i(1), i(2), o(0));
    case OpKind::layer_norm:
      return k.layer_norm(rows_of(s), op.scalar, i(0), {}, i(1), i(2), {}, o(0), o(1), o(2));
    case OpKind::add_layer_norm:
      return k.layer_norm(rows_of(s), op.scalar, i(0), i(1), i(2), i(3), o(0), o(1), o(2), o(3));
    case OpKind::linear:
      return k.matmul(*product_of(op), i(0), i(1), i(2), o(0));
    case OpKind::attention:
      return k.attention(attention_of(s), i(0), o(0), o(1));
    case OpKind::gelu:
      return k.gelu(count_of(s), i(0), o(0));
    case OpKind::add:
      return k.add(count_of(s), i(0), i(1), o(0));
    case OpKind::dropout:
      return dropout(op, context, micro_batch);
    case OpKind::cross_entropy:
      return k.cross_entropy(rows_of(s), i(0), i(1), o(0), o(1));
    case OpKind::embedding_backward:
      return embedding_backward(op);
    case OpKind::layer_norm_backward:
      return k.layer_norm_backward(rows_of(s), op.accumulate, i(0), i(1), i(2), i(3), i(4), i(5), o(0), o(1), o(2));
    case OpKind::linear_input_grad:
    case OpKind::linear_weight_grad:
      return k.matmul(*product_of(op), i(0), i(1), {}, o(0));
    case OpKind::linear_bias_grad:
      return k.bias_grad(rows_of(s), op.accumulate, i(0), o(0));
    case OpKind::attention_backward:
      return k.attention_backward(attention_of(s), i(0), i(1), i(2), i(3), o(0));
    case OpKind::gelu_backward:
      return k.gelu_backward(count_of(s), i(0), i(1), o(0));
    case OpKind::cross_entropy_backward:
      return k.cross_entropy_backward(rows_of(s), i(0), i(1), i(2), o(0));
    case OpKind::load_batch:
      return load_batch(op, context, micro_batch);
    case OpKind::zero_fill:
      return zero_fill(op);
    case OpKind::cast:
      return k.cast(count_of(s), false, i(0), o(0));
    case OpKind::cast_shard:
      return cast_shard(op);
    case OpKind::retain:
      return retain(op);
    case OpKind::grad_norm:
      return grad_norm(op);
    default:
      FORESHARD_EXPECT(is_update(op.kind), std::string("not a compute op: ") + std::string(name_of(op.kind)));
      return update(op, context);
  }
}

/// A position table may have more rows than the sequence is long.
void Dispatch::embedding_backward(const Op& op) {
  kernels::Embedding embedding = embedding_of(op.sizes);
  const Operand& table = plan_.outputs(op)[1];
  embedding.positions = table.size_bytes / (op.sizes.cols * size_bytes(table.dtype));
  kernels_.embedding_backward(embedding, op.accumulate, in(op, 0), in(op, 1), out(op, 0), out(op, 1));
}

/// Elements are numbered over the whole micro-batch of all ranks, so that the mask does not depend on who computes a
/// row.
void Dispatch::dropout(const Op& op, const exec::StepContext& context, int micro_batch) {
  const std::int64_t count = count_of(op.sizes);
  const auto stream = static_cast<std::uint64_t>(micro_batch) << 32 | op.stream;
  kernels_.dropout({.count = count,
                    .probability = op.scalar,
                    .key = context.dropout_key,
                    .stream = stream,
                    .first = static_cast<std::uint64_t>(rank_ * count)},
                   in(op, 0), out(op, 0));
}

void Dispatch::load_batch(const Op& op, const exec::StepContext& context, int micro_batch) {
  const auto rows = static_cast<std::size_t>(op.sizes.rows), first = rows * static_cast<std::size_t>(micro_batch);
  FORESHARD_EXPECT(context.tokens.size() >= first + rows && context.targets.size() >= first + rows,
                   "the step's batch is too short for the plan");
  std::ranges::copy(context.tokens.subspan(first, rows), static_cast<std::int32_t*>(out(op, 0).data));
  std::ranges::copy(context.targets.subspan(first, rows), static_cast<std::int32_t*>(out(op, 1).data));
}

void Dispatch::zero_fill(const Op& op) {
  const Operand& operand = plan_.outputs(op)[0];
  std::memset(bytes(operand), 0, static_cast<std::size_t>(operand.size_bytes));
}

/// Into this rank's part of the whole.
void Dispatch::cast_shard(const Op& op) {
  kernels::Mut part = out(op, 0);
  part.data =
      static_cast<std::byte*>(part.data) + plan_.mesh.shard_index(rank_) * op.sizes.rows * size_bytes(part.dtype);
  kernels_.cast(op.sizes.rows, false, in(op, 0), part);
}

/// This rank's part among its inner group.
void Dispatch::retain(const Op& op) {
  const Operand& part = plan_.outputs(op)[0];
  const auto* whole = static_cast<const std::byte*>(bytes(plan_.inputs(op)[0]));
  std::memcpy(bytes(part), whole + plan_.mesh.inner_index(rank_) * part.size_bytes,
              static_cast<std::size_t>(part.size_bytes));
}

void Dispatch::grad_norm(const Op& op) {
  const std::span<std::int64_t, exact_sum_words> sum(static_cast<std::int64_t*>(out(op, 0).data), exact_sum_words);
  kernels_.add_squares(op.sizes.rows, in(op, 0), sum);
}

/// The mean over valid tokens, and the clip coefficient max_norm / (norm + 1e-6), at most 1, of
/// torch.nn.utils.clip_grad_norm_.
double Dispatch::gradient_scale(const Op& op, const exec::StepContext& context) {
  const std::span<const std::int64_t, exact_sum_words> sum(static_cast<const std::int64_t*>(in(op, 1).data),
                                                           exact_sum_words);
  const double tokens = static_cast<const double*>(in(op, 2).data)[1];
  if (tokens == 0) return 0;
  const double norm = std::sqrt(kernels::value_of(sum)) / tokens;
  const double clip = context.max_norm > 0 ? std::min(1.0, context.max_norm / (norm + 1e-6)) : 1.0;
  return clip / tokens;
}

/// This rank's shard, parameter by parameter.
void Dispatch::update(const Op& op, const exec::StepContext& context) {
  const plan::FlatParameter& flat = plan_.units[op.unit.value];
  const std::int64_t begin = flat.shard_elements * plan_.mesh.shard_index(rank_), end = begin + flat.shard_elements;
  kernels::Update update{.step = context.step,
                         .beta1 = context.beta1,
                         .beta2 = context.beta2,
                         .epsilon = context.epsilon,
                         .grad_scale = gradient_scale(op, context),
                         .momentum = context.momentum,
                         .nesterov = context.nesterov};
  for (const plan::FlatPiece& piece : flat.pieces) {
    const std::int64_t from = std::max(begin, piece.offset), to = std::min(end, piece.offset + piece.elements);
    if (from >= to) continue;
    const exec::ParameterRule& rule = context.rules[piece.parameter.value];
    update.count = to - from;
    update.learning_rate = context.learning_rate * rule.learning_rate_scale;
    update.weight_decay = rule.weight_decay;
    update_piece(op, update, from - begin);
  }
}

/// Elements [first, first + count) of the shard.
void Dispatch::update_piece(const Op& op, const kernels::Update& update, std::int64_t first) {
  const auto part = [&](auto operand) {
    operand.data =
        const_cast<std::byte*>(static_cast<const std::byte*>(operand.data)) + first * size_bytes(operand.dtype);
    return operand;
  };
  const kernels::Const grad = part(in(op, 0));
  const auto o = [&](std::size_t index) { return part(out(op, index)); };
  switch (op.kind) {
    case OpKind::adamw:
      return kernels_.adamw(update, grad, o(0), o(1), o(2));
    case OpKind::adam:
      return kernels_.adam(update, grad, o(0), o(1), o(2));
    case OpKind::lion:
      return kernels_.lion(update, grad, o(0), o(1));
    case OpKind::sgd_momentum:
      return kernels_.sgd(update, grad, o(0), o(1));
    default:
      return kernels_.sgd(update, grad, o(0), {});
  }
}

}  // namespace foreshard::engine
