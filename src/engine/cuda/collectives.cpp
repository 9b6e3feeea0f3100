#include "engine/cuda/collectives.hpp"

namespace foreshard::engine::cuda {
namespace {

using comm::nccl::Channel;
using plan::GroupKind;
using plan::Op;
using plan::OpKind;

}  // namespace

Collectives::Collectives(const plan::Mesh& mesh, comm::Communicator& ranks, comm::nccl::Deadline deadline)
    : world_(comm::nccl::connect(ranks, deadline)) {
  try {
    split(mesh, ranks.rank(), deadline);
  } catch (...) {
    abort();
    throw;
  }
}

void Collectives::split(const plan::Mesh& mesh, int rank, comm::nccl::Deadline deadline) {
  gather_ = comm::nccl::split(world_, mesh.shard_group(rank), rank, deadline);
  reduce_ = comm::nccl::split(world_, mesh.shard_group(rank), rank, deadline);
  inner_ = comm::nccl::split(world_, mesh.inner_group(rank), rank, deadline);
  replica_ = comm::nccl::split(world_, mesh.replica_group(rank), rank, deadline);
}

const Channel& Collectives::channel_of(const Op& op) const {
  switch (op.kind) {
    case OpKind::all_gather:
      return op.group == GroupKind::inner ? inner_ : gather_;
    case OpKind::reduce_scatter:
    case OpKind::sum_norm:
    case OpKind::gather_norm:
      return reduce_;
    case OpKind::all_reduce:
      return op.group == GroupKind::world ? world_ : replica_;
    default:
      return world_;
  }
}

void Collectives::run(const Op& op, const plan::Plan& plan, std::byte* from, std::byte* to, DeviceQueue queue) {
  const plan::Operand &input = plan.inputs(op)[0], &output = plan.outputs(op)[0];
  const Channel& channel = channel_of(op);
  const Sum sum{op.sizes.rows, input.dtype, output.dtype, op.accumulate};
  switch (op.kind) {
    case OpKind::all_gather:
    case OpKind::gather_norm: {
      const std::int64_t count = op.sizes.rows / channel.size();
      std::byte* own = input.buffer == output.buffer ? to + channel.index() * count * size_bytes(input.dtype) : from;
      return all_gather(channel, count, input.dtype, own, to, queue);
    }
    case OpKind::reduce_scatter:
      return reduce_scatter(channel, {op.sizes.rows / channel.size(), sum.travels, sum.stays, sum.accumulate}, from, to,
                            queue);
    default:
      return all_reduce(channel, sum, from, to, queue);
  }
}

void Collectives::expect_sound() const {
  for (const Channel* channel : {&world_, &gather_, &inner_, &reduce_, &replica_}) channel->expect_sound();
}

void Collectives::abort() noexcept {
  for (Channel* channel : {&world_, &gather_, &inner_, &reduce_, &replica_}) channel->abort();
}

}  // namespace foreshard::engine::cuda
