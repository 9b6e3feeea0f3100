#include "engine/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "base/exact_sum.hpp"

namespace foreshard::engine {
namespace {

using plan::Op;
using plan::Operand;
using plan::OpKind;
using plan::Sizes;

static_assert(kernels::ExactSum::words == exact_sum_words);

kernels::Rows rows_of(const Sizes& s) { return {.rows = s.rows, .cols = s.cols}; }
std::int64_t count_of(const Sizes& s) { return s.rows * s.cols; }

/// What a micro-batch has of a step's batch.
template <class T>
std::span<const T> part(std::span<const T> all, int micro_batch, std::size_t count) {
  const std::size_t first = count * static_cast<std::size_t>(micro_batch);
  FORESHARD_EXPECT(all.size() >= first + count, "the step's batch is too short for the plan");
  return all.subspan(first, count);
}

}  // namespace

void* Dispatch::bytes(const Operand& operand) {
  if (!operand.present()) return nullptr;
  const plan::Buffer& buffer = plan_.buffers[operand.buffer.value];
  FORESHARD_EXPECT(operand.offset_bytes + operand.size_bytes <= buffer.size_bytes,
                   "an operand reaches beyond its buffer");
  return arenas_.of(buffer.space).at(buffer.offset_bytes, buffer.size_bytes) + operand.offset_bytes;
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
  if (const Kernel kernel = kernel_of(op.kind)) return kernel(call_of(op));
  switch (op.kind) {
    case OpKind::load_batch:
      return load_batch(op, context, micro_batch);
    case OpKind::load_images:
      return load_images(op, context, micro_batch);
    case OpKind::embedding_backward:
      return embedding_backward(op);
    case OpKind::dropout:
      return dropout(op, context, micro_batch);
    case OpKind::cross_entropy:
      return cross_entropy(op, micro_batch);
    case OpKind::cross_entropy_backward:
      return cross_entropy_backward(op, context);
    case OpKind::zero_fill:
      return zero_fill(op);
    case OpKind::cast_shard:
      return cast_shard(op);
    case OpKind::fetch:
    case OpKind::offload:
      return copy(op);
    case OpKind::retain:
      return retain(op);
    case OpKind::grad_norm:
      return grad_norm(op);
    default:
      FORESHARD_EXPECT(is_update(op.kind), std::string("not a compute op: ") + std::string(name_of(op.kind)));
      return update(op, context);
  }
}

KernelCall Dispatch::call_of(const Op& op) {
  FORESHARD_EXPECT(std::max<std::size_t>(op.input_count, op.output_count) <= KernelCall::most_operands,
                   "an op has more operands than any kernel");
  KernelCall call{.kernels = kernels_, .op = op, .in = {}, .out = {}};
  for (std::size_t i = 0; i < op.input_count; ++i) call.in[i] = in(op, i);
  for (std::size_t i = 0; i < op.output_count; ++i) call.out[i] = out(op, i);
  return call;
}

/// A position table may have more rows than the sequence is long.
void Dispatch::embedding_backward(const Op& op) {
  const Sizes& s = op.sizes;
  const Operand& table = plan_.outputs(op)[1];
  const kernels::Embedding embedding{.rows = s.rows,
                                     .cols = s.cols,
                                     .vocab = s.inner,
                                     .seq = s.seq,
                                     .positions = table.size_bytes / (s.cols * size_bytes(table.dtype)),
                                     .shifted = op.scalar != 0};
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
  const auto load = [&](const Operand& to, std::span<const std::int32_t> from) {
    if (!to.present()) return;
    const auto count = static_cast<std::size_t>(to.size_bytes / size_bytes(DType::i32));
    std::ranges::copy(part(from, micro_batch, count), static_cast<std::int32_t*>(bytes(to)));
  };
  load(plan_.outputs(op)[0], context.tokens);
  load(plan_.outputs(op)[1], context.targets);
}

void Dispatch::load_images(const Op& op, const exec::StepContext& context, int micro_batch) {
  const std::int64_t count = count_of(op.sizes);
  const auto images = part(context.images, micro_batch, static_cast<std::size_t>(count));
  kernels_.cast(count, false, {images.data(), DType::f32}, out(op, 0));
}

void Dispatch::zero_fill(const Op& op) {
  const Operand& operand = plan_.outputs(op)[0];
  std::memset(bytes(operand), 0, static_cast<std::size_t>(operand.size_bytes));
}

/// Into this rank's part of the whole.
void Dispatch::cast_shard(const Op& op) {
  kernels::Mut part = out(op, 0);
  const int index = rank_ % plan_.units[op.unit.value].shard_degree;
  part.data = static_cast<std::byte*>(part.data) + index * op.sizes.rows * size_bytes(part.dtype);
  kernels_.cast(op.sizes.rows, false, in(op, 0), part);
}

void Dispatch::copy(const Op& op) {
  const kernels::Const from = in(op, 0);
  const kernels::Mut to = out(op, 0);
  if (op.accumulate) return kernels_.cast(op.sizes.rows, true, from, to);
  std::memcpy(to.data, from.data, static_cast<std::size_t>(op.sizes.rows * size_bytes(to.dtype)));
}

/// This rank's part among its inner group.
void Dispatch::retain(const Op& op) {
  const Operand& part = plan_.outputs(op)[0];
  const auto* whole = static_cast<const std::byte*>(bytes(plan_.inputs(op)[0]));
  std::memcpy(bytes(part), whole + plan_.mesh.inner_index(rank_) * part.size_bytes,
              static_cast<std::size_t>(part.size_bytes));
}

/// Looks at the loss as it comes, since at the end of a step it is a sum over micro-batches and ranks.
void Dispatch::cross_entropy(const Op& op, int micro_batch) {
  const kernels::Mut loss = out(op, 0);
  kernels_.cross_entropy(rows_of(op.sizes), in(op, 0), in(op, 1), loss, out(op, 1));
  if (loss_fault_.micro_batch >= 0 || std::isfinite(*static_cast<const double*>(loss.data))) return;
  loss_fault_ = {micro_batch, first_row_not_finite(op)};
}

void Dispatch::cross_entropy_backward(const Op& op, const exec::StepContext& context) {
  kernels_.cross_entropy_backward(rows_of(op.sizes), static_cast<float>(context.loss_scale), in(op, 0), in(op, 1),
                                  in(op, 2), out(op, 0));
}

std::int64_t Dispatch::first_row_not_finite(const Op& op) {
  const kernels::Mut sums = out(op, 1);
  for (std::int64_t row = 0; row < op.sizes.rows; ++row) {
    const double value = sums.dtype == DType::f64 ? static_cast<const double*>(sums.data)[row]
                                                  : static_cast<double>(static_cast<const float*>(sums.data)[row]);
    if (!std::isfinite(value)) return row;
  }
  return -1;
}

void Dispatch::grad_norm(const Op& op) {
  auto* words = static_cast<std::int64_t*>(out(op, 0).data);
  if (std::isinf(op.scalar)) return kernels_.max_magnitude(op.sizes.rows, in(op, 0), *words);
  kernels_.add_powers(static_cast<int>(op.scalar), op.sizes.rows, in(op, 0),
                      std::span<std::int64_t, exact_sum_words>(words, exact_sum_words));
}

StepSums Dispatch::sums(const Op& op, const exec::StepContext& context) {
  const std::span words(static_cast<const std::int64_t*>(in(op, 1).data), static_cast<std::size_t>(plan_.norm_words()));
  return step_sums(plan_.norm_power, words, static_cast<const double*>(in(op, 2).data), context.loss_scale);
}

/// This rank's shard, parameter by parameter; nothing, on any rank, if the step's verdict is not finite.
void Dispatch::update(const Op& op, const exec::StepContext& context) {
  const StepSums step = sums(op, context);
  if (!step.finite()) return;
  kernels::Update update{.beta1 = context.beta1,
                         .beta2 = context.beta2,
                         .epsilon = context.epsilon,
                         .grad_scale = step.gradient_scale(context.max_norm, context.loss_scale),
                         .clip_value = context.clip_value > 0 ? context.clip_value : HUGE_VAL,
                         .momentum = context.momentum,
                         .nesterov = context.nesterov,
                         .rounding = {.stochastic = context.stochastic_rounding, .key = context.rounding_key}};
  for (const plan::ShardPart& part : plan::parts_of_shard(plan_.units[op.unit.value], rank_)) {
    if (!part.piece->updated()) continue;
    const exec::ParameterRule& rule = context.rules[part.piece->parameter.value];
    update.count = part.count;
    update.step = rule.update;
    update.learning_rate = context.learning_rate * rule.learning_rate_scale;
    update.weight_decay = rule.weight_decay;
    update.rounding.stream = part.piece->parameter.value;
    update.rounding.first = static_cast<std::uint64_t>(part.first);
    update_piece(op, update, part.at);
  }
}

/// Elements [first, first + count) of the shard.
void Dispatch::update_piece(const Op& op, const kernels::Update& update, std::int64_t first) {
  const auto piece = [&](auto operand) {
    operand.data =
        const_cast<std::byte*>(static_cast<const std::byte*>(operand.data)) + first * size_bytes(operand.dtype);
    return operand;
  };
  const kernels::Const grad = piece(in(op, 0));
  const auto o = [&](std::size_t index) { return piece(out(op, index)); };
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
