#include "engine/cuda/collective_times.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace foreshard::engine::cuda {
namespace {

using model::OpKind;

constexpr std::int64_t slots = 3, smallest_bytes = 256;
constexpr double budget_s = 0.1;  ///< of a collective of one size
constexpr auto poll_interval = std::chrono::microseconds(20);

}  // namespace

CollectiveTimes::CollectiveTimes(comm::Communicator& ranks, comm::nccl::Channel& channel, const Stream& stream,
                                 std::int64_t largest_bytes)
    : ranks_(ranks),
      channel_(channel),
      stream_(stream),
      largest_bytes_(largest_bytes),
      slots_(slots * largest_bytes),
      meeting_(smallest_bytes) {}

std::vector<CudaCollective> CollectiveTimes::all() {
  try {
    return measured();
  } catch (...) {
    channel_.abort();
    throw;
  }
}

std::vector<CudaCollective> CollectiveTimes::measured() {
  std::vector<CudaCollective> found;
  for (const OpKind kind : {OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_reduce})
    for (std::int64_t bytes = smallest_bytes * channel_.size(); bytes <= largest_bytes_; bytes *= 4)
      found.push_back({kind, bytes, seconds(kind, bytes)});
  return found;
}

/// As many calls on all ranks; the lower quartile, since what disturbs only adds.
double CollectiveTimes::seconds(OpKind kind, std::int64_t bytes) {
  const double first = slowest(call(kind, bytes));
  const int calls = std::clamp(static_cast<int>(budget_s / first), 5, 50);
  std::vector<double> times;
  for (int i = 0; i < calls; ++i) times.push_back(call(kind, bytes));
  const auto quartile = times.begin() + calls / 4;
  std::nth_element(times.begin(), quartile, times.end());
  return slowest(*quartile);
}

double CollectiveTimes::call(OpKind kind, std::int64_t bytes) {
  std::byte* const whole = slots_.data() + largest_bytes_ * (turn_++ % slots);
  channel_.all_reduce(meeting_.data(), meeting_.data(), 1, DType::i32, stream_.get());
  stream_.record(begin_);
  queue(kind, whole, bytes / size_bytes(DType::f32));
  stream_.record(end_);
  await();
  return 1e-9 * elapsed_ns(begin_, end_);
}

/// In place, as the engine gathers and reduces.
void CollectiveTimes::queue(OpKind kind, std::byte* whole, std::int64_t count) const {
  const std::int64_t part = count / channel_.size();
  std::byte* const own = whole + channel_.index() * part * size_bytes(DType::f32);
  if (kind == OpKind::all_gather) channel_.all_gather(own, whole, part, DType::f32, stream_.get());
  if (kind == OpKind::reduce_scatter) channel_.reduce_scatter(whole, own, part, DType::f32, stream_.get());
  if (kind == OpKind::all_reduce) channel_.all_reduce(whole, whole, count, DType::f32, stream_.get());
}

/// Where another rank ends, so does this.
void CollectiveTimes::await() const {
  while (!stream_.idle()) {
    channel_.expect_sound();
    ranks_.expect_running("a collective of NCCL");
    std::this_thread::sleep_for(poll_interval);
  }
}

double CollectiveTimes::slowest(double seconds) const {
  double worst = 1e-9;
  for (const std::uint64_t ns : ranks_.all_gather_u64(static_cast<std::uint64_t>(std::max(0.0, seconds) * 1e9)))
    worst = std::max(worst, 1e-9 * static_cast<double>(ns));
  return worst;
}

}  // namespace foreshard::engine::cuda
