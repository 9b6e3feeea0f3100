#include "engine/cpu_executor.hpp"

#include <omp.h>

#include <algorithm>
#include <numeric>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "comm/moves_messages.hpp"

namespace foreshard::engine {
namespace {

using plan::Lane;
using plan::Op;
using plan::OpKind;

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

CpuExecutor::CpuExecutor(const EngineSpec& spec, kernels::Backend& kernels, CpuOptions options)
    : communicator_(spec.communicator),
      host_memory_(comm::Mapping::anonymous(spec.host_bytes)),
      arenas_{Arena(communicator_.arena(spec.device_bytes)), Arena(host_memory_.bytes())},
      kernels_(kernels),
      options_(std::move(options)),
      pulse_(options_.pulse ? *options_.pulse : unseen_pulse_),
      rank_(communicator_.rank()) {
  gather_group_ = communicator_.group(spec.mesh.shard_group(rank_));
  reduce_group_ = communicator_.group(spec.mesh.shard_group(rank_));
  norm_group_ = communicator_.group(spec.mesh.shard_group(rank_));
  inner_group_ = communicator_.group(spec.mesh.inner_group(rank_));
  replica_group_ = communicator_.group(spec.mesh.replica_group(rank_));
  world_group_ = communicator_.group(all_ranks(communicator_.size()));
}

CpuExecutor::~CpuExecutor() = default;

void CpuExecutor::begin_step(const plan::Plan& plan, const exec::StepContext& context, trace::Recorder* recorder) {
  if (plan_ != &plan) dispatch_ = std::make_unique<Dispatch>(plan, rank_, arenas_, kernels_);
  dispatch_->begin_step();
  plan_ = &plan;
  context_ = &context;
  recorder_ = recorder;
  pulse_.begin_step(context.step);
}

std::span<std::byte> CpuExecutor::bytes(const plan::Buffer& buffer) {
  return {arenas_.of(buffer.space).at(buffer.offset_bytes, buffer.size_bytes),
          static_cast<std::size_t>(buffer.size_bytes)};
}

LaneThread& CpuExecutor::thread_of(Lane lane) {
  auto& thread = threads_[static_cast<std::size_t>(lane)];
  if (!thread) thread = std::make_unique<LaneThread>([this](const Task& task, bool more) { run(task, more); });
  return *thread;
}

exec::Ticket CpuExecutor::issue(const exec::Instance& instance, std::span<const exec::Ticket> waits) {
  const Lane lane = instance.op->lane;
  Task task{.instance = instance, .ticket = {lane, ++issued_[static_cast<std::size_t>(lane)]}};
  for (const exec::Ticket& wait : waits) {
    std::uint64_t& sequence = task.waits[static_cast<std::size_t>(wait.lane)];
    sequence = std::max(sequence, wait.sequence);
  }
  thread_of(lane).push(task);
  return task.ticket;
}

void CpuExecutor::finish() {
  for (int lane = 0; lane < plan::lane_count; ++lane)
    progress_.wait_for({static_cast<Lane>(lane), issued_[static_cast<std::size_t>(lane)]}, Progress::issuer);
  pulse_.end_step();
  const std::lock_guard lock(error_mutex_);
  if (error_) std::rethrow_exception(error_);
}

/// Blocks until the op is free to run, and returns when that was. Only then are those woken who wait for the op before
/// it, and messages moved: where they have a core together, they take it, and it would look as if this op had not been
/// free to run.
std::int64_t CpuExecutor::begin(const Task& task) {
  for (int lane = 0; lane < plan::lane_count; ++lane)
    progress_.wait_for({static_cast<Lane>(lane), task.waits[static_cast<std::size_t>(lane)]},
                       static_cast<std::size_t>(task.ticket.lane));
  const std::int64_t start_ns = recorder_ ? now_ns() : 0;
  progress_.wake(task.ticket.lane);
  if (task.ticket.lane == Lane::compute) comm::yield_to_messages();
  return start_ns;
}

/// A lane keeps counting after a failure, so that nobody waits for ops that will not run.
void CpuExecutor::run(const Task& task, bool more) {
  const std::int64_t start_ns = begin(task);
  if (!failed_) {
    try {
      execute(task, start_ns);
    } catch (...) {
      fail(std::current_exception());
    }
  }
  pulse_.leave(task.ticket.lane, task.ticket.sequence);
  progress_.advance(task.ticket.lane);
  if (!more) progress_.wake(task.ticket.lane);
}

void CpuExecutor::execute(const Task& task, std::int64_t start_ns) {
  const Op& op = *task.instance.op;
  pulse_.enter(op.lane, task.ticket.sequence, static_cast<std::uint32_t>(&op - plan_->ops.data()),
               task.instance.micro_batch);
  if (options_.before_op) options_.before_op(op);
  const std::uint64_t received = recorder_ ? received_bytes(op.kind) : 0;
  if (plan::is_collective(op.kind)) {
    run_collective(op);
  } else {
    omp_set_num_threads(op.lane == Lane::compute ? options_.threads : 1);
    dispatch_->run(op, *context_, task.instance.micro_batch);
  }
  if (recorder_) record(task, start_ns, received);
}

void CpuExecutor::run_collective(const Op& op) {
  const plan::Operand& input = plan_->inputs(op)[0];
  const plan::Operand& output = plan_->outputs(op)[0];
  const void* from = dispatch_->bytes(input);
  void* to = dispatch_->bytes(output);
  const std::int64_t shard = op.sizes.rows / plan_->mesh.members(op.group);
  const comm::SumTypes types(input.dtype, output.dtype);
  switch (op.kind) {
    case OpKind::all_gather:
      return all_gather(op, *(op.group == plan::GroupKind::inner ? inner_group_ : gather_group_));
    case OpKind::reduce_scatter:
      return reduce_group_->reduce_scatter(from, to, shard, types, op.accumulate);
    case OpKind::all_reduce:
      return (op.group == plan::GroupKind::world ? world_group_ : replica_group_)
          ->all_reduce(from, to, op.sizes.rows, types, op.accumulate);
    case OpKind::gather_norm:
      return norm_group_->all_gather(from, to, shard, input.dtype);
    case OpKind::sum_norm:
      return norm_group_->all_reduce(from, to, op.sizes.rows, input.dtype, false);
    default:
      return world_group_->all_reduce(from, to, op.sizes.rows, input.dtype, false);
  }
}

/// Where input and output are one buffer, this rank's part lies in its place already.
void CpuExecutor::all_gather(const Op& op, comm::Group& group) {
  const plan::Operand &input = plan_->inputs(op)[0], &output = plan_->outputs(op)[0];
  const std::int64_t count = op.sizes.rows / group.size();
  auto* whole = static_cast<std::byte*>(dispatch_->bytes(output));
  const void* own =
      input.buffer == output.buffer ? whole + group.index() * count * size_bytes(input.dtype) : dispatch_->bytes(input);
  group.all_gather(own, whole, count, input.dtype);
}

/// Each collective kind has one lane, so the difference of two readings on that lane is one op's.
std::uint64_t CpuExecutor::received_bytes(OpKind kind) const {
  if (!plan::is_collective(kind)) return 0;
  const comm::Counters counters = communicator_.counters();
  if (kind == OpKind::all_gather || kind == OpKind::gather_norm) return counters.all_gather.received_bytes;
  return kind == OpKind::reduce_scatter ? counters.reduce_scatter.received_bytes : counters.all_reduce.received_bytes;
}

void CpuExecutor::record(const Task& task, std::int64_t start_ns, std::uint64_t received_before) {
  const Op& op = *task.instance.op;
  recorder_->record(op.lane, {.start_ns = start_ns,
                              .duration_ns = now_ns() - start_ns,
                              .op = static_cast<std::uint32_t>(&op - plan_->ops.data()),
                              .step = static_cast<std::int32_t>(context_->step),
                              .micro_batch = task.instance.micro_batch,
                              .received_bytes = received_bytes(op.kind) - received_before});
}

void CpuExecutor::fail(std::exception_ptr error) {
  {
    const std::lock_guard lock(error_mutex_);
    if (error_) return;
    error_ = error;
  }
  failed_ = true;
  options_.on_failure(error);
}

MakeEngine on_cpu(kernels::Backend& kernels, CpuOptions options) {
  return [&kernels, options = std::move(options)](const EngineSpec& spec) {
    return std::make_unique<CpuExecutor>(spec, kernels, options);
  };
}

}  // namespace foreshard::engine
