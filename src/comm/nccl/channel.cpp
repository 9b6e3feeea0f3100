#include "comm/nccl/channel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "comm/nccl/call.hpp"

namespace foreshard::comm::nccl {
namespace {

using std::chrono::steady_clock;
constexpr auto poll_interval = std::chrono::milliseconds(1);

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f16:
      return ncclFloat16;
    case DType::i32:
      return ncclInt32;
    default:
      return ncclInt64;
  }
}

ncclResult_t state_of(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError");
  return state;
}

/// Calls of communicators that do not block return before they have done their work on the host. Where a rank never
/// comes, the watchdog ends the run.
void settle(ncclComm_t comm, ncclResult_t result, std::string_view call) {
  while (result == ncclInProgress) result = state_of(comm);
  check(result, call);
}

/// The same before a deadline, beside other ranks.
void await(ncclComm_t comm, ncclResult_t result, std::string_view call, Deadline deadline) {
  while (result == ncclInProgress && steady_clock::now() < deadline) {
    std::this_thread::sleep_for(poll_interval);
    result = state_of(comm);
  }
  if (result == ncclInProgress)
    throw LibraryError(
        fmt::format("{}: not all ranks have come by the deadline; NCCL_DEBUG=INFO says what it waits for", call));
  check(result, call);
}

/// Waits for `maker`, whose call made `comm`, which may be known only then, and for `comm` itself. Nothing is left of
/// one that cannot be used.
void await_made(const ncclComm_t& comm, ncclComm_t maker, ncclResult_t result, std::string_view call,
                Deadline deadline) {
  try {
    await(maker, result, call, deadline);
    await(comm, ncclInProgress, call, deadline);
  } catch (...) {
    if (comm) ncclCommAbort(comm);
    throw;
  }
}

ncclConfig_t without_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

/// The same on all ranks. Some MPI libraries progress a broadcast only in later calls, hence the barrier.
ncclUniqueId agreed_id(Communicator& ranks) {
  ncclUniqueId id{};
  if (ranks.rank() == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  ranks.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
  ranks.barrier();
  return id;
}

}  // namespace

Channel::~Channel() {
  if (comm_) ncclCommDestroy(comm_);
}

void Channel::all_gather(const void* shard, void* whole, std::int64_t count, DType dtype, cudaStream_t stream) const {
  settle(comm_, ncclAllGather(shard, whole, static_cast<std::size_t>(count), type_of(dtype), comm_, stream),
         "ncclAllGather");
}

void Channel::reduce_scatter(const void* whole, void* shard, std::int64_t count, DType dtype,
                             cudaStream_t stream) const {
  settle(comm_,
         ncclReduceScatter(whole, shard, static_cast<std::size_t>(count), type_of(dtype), ncclSum, comm_, stream),
         "ncclReduceScatter");
}

void Channel::all_reduce(const void* x, void* sum, std::int64_t count, DType dtype, cudaStream_t stream) const {
  settle(comm_, ncclAllReduce(x, sum, static_cast<std::size_t>(count), type_of(dtype), ncclSum, comm_, stream),
         "ncclAllReduce");
}

void Channel::expect_sound() const {
  if (comm_) check(state_of(comm_), "a collective of NCCL");
}

void Channel::abort() noexcept {
  if (comm_) ncclCommAbort(std::exchange(comm_, nullptr));
}

Channel connect(Communicator& ranks, Deadline deadline) {
  if (ranks.size() == 1) return {};
  const ncclUniqueId id = agreed_id(ranks);
  ncclConfig_t config = without_blocking();
  ncclComm_t comm = nullptr;
  const ncclResult_t result = ncclCommInitRankConfig(&comm, ranks.size(), id, ranks.rank(), &config);
  await_made(comm, comm, result, "ncclCommInitRankConfig", deadline);
  return {comm, ranks.size(), ranks.rank()};
}

Channel split(const Channel& world, std::span<const int> members, int rank, Deadline deadline) {
  if (members.size() == 1) return {};
  const auto index = static_cast<int>(std::ranges::find(members, rank) - members.begin());
  FORESHARD_EXPECT(index < static_cast<int>(members.size()), "a rank is not a member of its own group");
  ncclConfig_t config = without_blocking();
  ncclComm_t comm = nullptr;
  const ncclResult_t result = ncclCommSplit(world.comm(), members.front(), index, &comm, &config);
  await_made(comm, world.comm(), result, "ncclCommSplit", deadline);
  return {comm, static_cast<int>(members.size()), index};
}

std::string version() {
  int version = 0;
  check(ncclGetVersion(&version), "ncclGetVersion");
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace foreshard::comm::nccl
