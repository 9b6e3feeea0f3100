#include "engine/cuda/compute.hpp"

namespace foreshard::engine::cuda {
namespace {

using kernels::cuda::Optimizer;
using plan::Op;
using plan::Operand;
using plan::OpKind;

Optimizer optimizer_of(OpKind kind) {
  switch (kind) {
    case OpKind::adamw:
      return Optimizer::adamw;
    case OpKind::adam:
      return Optimizer::adam;
    case OpKind::lion:
      return Optimizer::lion;
    case OpKind::sgd_momentum:
      return Optimizer::sgd_momentum;
    default:
      return Optimizer::sgd;
  }
}

std::byte* at(void* data, std::int64_t offset) { return static_cast<std::byte*>(data) + offset; }

}  // namespace

kernels::Const Compute::in(const Op& op, std::size_t index) { return read(plan_.inputs(op)[index]); }

kernels::Mut Compute::out(const Op& op, std::size_t index) {
  const Operand& operand = plan_.outputs(op)[index];
  return {dispatch_.bytes(operand), operand.dtype};
}

/// What touches memory or the step on the host elsewhere does so on the device here; all else is kernels alone.
void Compute::run(const Op& op) {
  if (prepared_.is_done_before(op)) return;
  if (const FusedPair* pair = prepared_.fused(op)) return fused_product(*pair);
  switch (op.kind) {
    case OpKind::load_batch:
      load(op, 0, {step_.tokens(), DType::i32});
      return load(op, 1, {step_.targets(), DType::i32});
    case OpKind::load_images:
      return load(op, 0, {step_.images(), DType::f32});
    case OpKind::dropout:
      return dropout(op);
    case OpKind::cross_entropy:
      return kernels_.cross_entropy(step_.step(), rows(op), in(op, 0), in(op, 1), out(op, 0), out(op, 1));
    case OpKind::cross_entropy_backward:
      return kernels_.cross_entropy_backward(step_.step(), rows(op), in(op, 0), in(op, 1), in(op, 2), out(op, 0));
    case OpKind::zero_fill:
      return zero_fill(op);
    case OpKind::fetch:
    case OpKind::offload:
      return copy(op);
    case OpKind::retain:
      return retain(op);
    default:
      return is_update(op.kind) ? update(op) : dispatch_.run(op, {}, 0);
  }
}

void Compute::fused_product(const FusedPair& pair) {
  const auto inputs = plan_.inputs(*pair.op);
  const auto written = [&](const Operand& operand) { return kernels::Mut{dispatch_.bytes(operand), operand.dtype}; };
  const auto& [matmul, types] = pair.product;
  kernels_.matmul(matmul, types.fused, read(inputs[0]), read(inputs[1]),
                  types.bias ? read(inputs[2]) : kernels::Const{}, written(pair.result), written(pair.other));
}

/// What the plan's model does not read has no buffer: tokens, where it is of images.
void Compute::load(const Op& op, std::size_t index, kernels::Const staged) {
  const Operand& part = plan_.outputs(op)[index];
  if (part.present())
    kernels_.load_micro_batch(step_.step(), part.size_bytes / size_bytes(part.dtype), staged, out(op, index));
}

void Compute::dropout(const Op& op) {
  const std::int64_t count = op.sizes.rows * op.sizes.cols;
  kernels_.dropout(step_.step(),
                   {.count = count,
                    .probability = op.scalar,
                    .stream = op.stream,
                    .first = static_cast<std::uint64_t>(rank_ * count)},
                   in(op, 0), out(op, 0));
}

void Compute::zero_fill(const Op& op) { kernels_.zero(out(op, 0).data, plan_.outputs(op)[0].size_bytes); }

void Compute::copy(const Op& op) {
  const kernels::Const from = in(op, 0);
  const kernels::Mut to = out(op, 0);
  op.accumulate ? kernels_.cast(op.sizes.rows, true, from, to)
                : kernels_.copy(from.data, to.data, op.sizes.rows * size_bytes(to.dtype));
}

void Compute::retain(const Op& op) {
  const Operand& part = plan_.outputs(op)[0];
  const std::int64_t offset = plan_.mesh.inner_index(rank_) * part.size_bytes;
  kernels_.copy(at(dispatch_.bytes(plan_.inputs(op)[0]), offset), dispatch_.bytes(part), part.size_bytes);
}

void Compute::update(const Op& op) {
  const auto parts = prepared_.parts(op);
  const auto moment = [&](std::size_t index) { return index < op.output_count ? out(op, index) : kernels::Mut{}; };
  kernels_.update(optimizer_of(op.kind), step_.step(), step_.rules(), parts.data(),
                  static_cast<std::int64_t>(parts.size()), op.sizes.rows, plan_.norm_power,
                  static_cast<const std::int64_t*>(in(op, 1).data), plan_.norm_words(),
                  static_cast<const double*>(in(op, 2).data), in(op, 0), out(op, 0), moment(1), moment(2));
}

}  // namespace foreshard::engine::cuda
