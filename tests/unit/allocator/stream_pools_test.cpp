// What fully sharded training does to the allocator: mechanisms that others met and reported, each as the ordering or
// the arithmetic that the report shows.
#include <gtest/gtest.h>

#include <deque>

#include "sim/allocator/caching_allocator.hpp"

namespace foreshard::sim::allocator {
namespace {

constexpr Stream compute = 0, gather = 1, reduce = 2;

/// Units are gathered on a stream of their own and used on the compute stream for `use` each; the host needs `issue`
/// a unit. With a limit, the host waits for the oldest use before it gathers beyond it.
Statistics gathers(int units, int limit, Nanoseconds issue, Nanoseconds use, Bytes unit_bytes) {
  CachingAllocator allocator(Settings{}, 80 * gib);
  std::deque<Nanoseconds> in_flight;
  Nanoseconds host = 0, done = 0;
  for (int unit = 0; unit < units; ++unit) {
    if (limit > 0 && int(in_flight.size()) == limit) {
      host = std::max(host, in_flight.front());
      in_flight.pop_front();
    }
    Block* whole = allocator.allocate(unit_bytes, gather, host).block;
    host += issue;
    done = std::max(done, host) + use;
    in_flight.push_back(done);
    allocator.free(whole, done);
  }
  return allocator.statistics();
}

/// pytorch/pytorch#98354: the same job has 38 555 MB active without the limiter and 7 164 MB with it.
TEST(StreamPools, TheRateLimiterCutsActiveMemoryMoreThanFivefold) {
  const Statistics with = gathers(24, 2, 1000, 10'000, 400 * mib), without = gathers(24, 0, 1000, 10'000, 400 * mib);
  EXPECT_EQ(with.active.peak, 2 * 400 * mib);
  EXPECT_GT(without.active.peak, 5 * with.active.peak);
  EXPECT_EQ(without.allocated.peak, with.allocated.peak) << "tensors never hold more than one unit";
  EXPECT_EQ(without.reserved.peak, without.active.peak);
}

/// A host that is slower than the device finds every unit done: nothing to limit (RegNet in the FSDP paper).
TEST(StreamPools, TheRateLimiterChangesNothingWhereTheHostIsSlow) {
  EXPECT_EQ(gathers(24, 0, 10'000, 1000, 400 * mib), gathers(24, 2, 10'000, 1000, 400 * mib));
}

/// NVIDIA/Megatron-LM#6885, pytorch/pytorch#129721: a buffer made on another stream changes what is reserved, though
/// not what is allocated.
TEST(StreamPools, AnotherStreamForABufferReservesMoreAndAllocatesTheSame) {
  const auto run = [](Stream stream) {
    CachingAllocator allocator(Settings{}, 80 * gib);
    for (int unit = 0; unit < 8; ++unit) {
      Block* gradient = allocator.allocate(800 * mib, compute, unit).block;
      allocator.free(gradient);
      Block* input = allocator.allocate(800 * mib, stream, unit).block;
      allocator.free(input);
    }
    return allocator.statistics();
  };
  const Statistics same = run(compute), other = run(reduce);
  EXPECT_EQ(same.allocated, other.allocated);
  EXPECT_EQ(same.reserved.peak, 800 * mib);
  EXPECT_EQ(other.reserved.peak, 1600 * mib);
}

/// pytorch/pytorch#147168, #135513: gathers recorded on another stream are kept beyond their use; made on the stream
/// that uses them, they are not.
TEST(StreamPools, RecordedStreamsKeepMemoryThatOrderedOnesReuse) {
  const auto run = [](bool recorded) {
    CachingAllocator allocator(Settings{}, 80 * gib);
    for (Nanoseconds unit = 0; unit < 8; ++unit) {
      Block* whole = allocator.allocate(500 * mib, recorded ? gather : compute, unit * 100).block;
      recorded ? allocator.free(whole, unit * 100 + 350) : allocator.free(whole);
    }
    return allocator.statistics();
  };
  EXPECT_EQ(run(false).reserved.peak, 500 * mib);
  EXPECT_EQ(run(true).reserved.peak, 4 * 500 * mib) << "3.5 uses reach into the next ones";
}

/// pytorch/pytorch#137151: with expandable segments, saving a checkpoint raises what is reserved from then on. Its
/// temporaries are mapped behind the step's, and nothing unmaps them.
TEST(StreamPools, SavingACheckpointRaisesReservedForGood) {
  CachingAllocator allocator(parse_settings("expandable_segments:True"), 80 * gib);
  const auto step = [&](Nanoseconds now) {
    Block* activations = allocator.allocate(2 * gib, compute, now).block;
    allocator.free(activations);
    return allocator.statistics().reserved.current;
  };
  allocator.allocate(600 * mib, compute, 0);
  const Bytes before = step(1);
  EXPECT_EQ(step(2), before);
  Block* activations = allocator.allocate(2 * gib, compute, 3).block;
  Block* copy = allocator.allocate(200 * mib, compute, 3).block;
  allocator.free(activations), allocator.free(copy);
  const Bytes after = step(4);
  EXPECT_EQ(after - before, 200 * mib);
  EXPECT_EQ(step(5), after);
}

/// The FSDP paper's 175 billion parameters on 128 devices at batch 2: near the limit, streams take segments from each
/// other, and every take stops the host until the device is idle.
TEST(StreamPools, NearTheLimitStreamsTakeSegmentsFromEachOtherAndStall) {
  const auto stalls = [](Bytes device) {
    CachingAllocator allocator(Settings{}, device);
    Nanoseconds host = 0, idle = 0;
    for (int unit = 0; unit < 10; ++unit)
      for (const Stream stream : {compute, gather}) {
        const Allocation got = allocator.allocate(3 * gib, stream, host, idle);
        EXPECT_FALSE(got.out_of_memory);
        host = got.host_at + 1000;
        idle = std::max(idle, host) + 50'000'000;
        allocator.free(got.block, idle);
      }
    return std::pair{allocator.statistics().retries, host};
  };
  const auto [none, fast] = stalls(80 * gib);
  const auto [many, slow] = stalls(5 * gib);
  EXPECT_EQ(none, 0);
  EXPECT_EQ(many, 19) << "all but the first";
  EXPECT_GT(slow, 18 * 50'000'000);
  EXPECT_LT(fast, 50'000'000);
}

}  // namespace
}  // namespace foreshard::sim::allocator
