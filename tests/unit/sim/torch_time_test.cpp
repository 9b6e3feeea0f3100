// Virtual time of PyTorch's FSDP: streams, communicators and the host against formulas on cases small enough to work
// out, and whole steps against what bounds them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/cost/gpu_gemm.hpp"
#include "sim/cost/gpu_memory.hpp"
#include "sim/runtimes/fsdp1.hpp"
#include "sim/runtimes/torch_step.hpp"

namespace foreshard::sim::torch {
namespace {

using model::OpKind;

TEST(TorchTimeline, StartsWorkWhenHostAndStreamAreReady) {
  Timeline time;
  time.host_works(5);
  EXPECT_EQ(time.run(Stream::compute, 10).end, 15);  // the host is later than the stream
  time.host_works(1);
  const Span second = time.run(Stream::compute, 10);  // the stream is later than the host
  EXPECT_EQ(second.start, 15);
  EXPECT_EQ(second.end, 25);
  EXPECT_EQ(time.host(), 6);
}

TEST(TorchTimeline, WaitsForEventsOfOtherStreams) {
  Timeline time;
  time.run(Stream::compute, 100);
  const Nanoseconds event = time.end_of(Stream::compute);
  time.run(Stream::compute, 100);
  time.wait(Stream::reduce, event);
  EXPECT_EQ(time.run(Stream::reduce, 10).start, 100);  // not for what came behind the event
  EXPECT_EQ(time.run(Stream::unshard, 10).start, 0);   // nor does any other stream wait
}

TEST(TorchTimeline, RunsOneCollectiveAtATimeOnACommunicator) {
  Timeline time;
  EXPECT_EQ(time.run(Stream::unshard, Communicator::shard, 50).end, 50);
  EXPECT_EQ(time.run(Stream::reduce, Communicator::shard, 50).start, 50);
  EXPECT_EQ(time.run(Stream::replicate, Communicator::replica, 50).start, 0);
  EXPECT_EQ(time.run(Stream::unshard, 1).start, 50);
}

TEST(TorchTimeline, HasRoomForSoManyLaunchesThatHaveNotBegun) {
  Timeline time;
  for (std::size_t i = 0; i < Timeline::launch_queue; ++i) time.run(Stream::compute, 10);
  EXPECT_EQ(time.room_in(Stream::compute), 0);  // the first has begun
  time.run(Stream::compute, 10);
  EXPECT_EQ(time.room_in(Stream::compute), 10);  // when the second begins
  EXPECT_EQ(time.room_in(Stream::reduce), 0);
}

TEST(TorchTimeline, BlocksTheHost) {
  Timeline time;
  time.run(Stream::compute, 100);
  EXPECT_EQ(time.block(100), 100);
  EXPECT_EQ(time.block(50), 0);
  EXPECT_EQ(time.run(Stream::unshard, 1).start, 100);
}

const Cluster& cluster() {
  static const Cluster one = read_cluster("dgx-a100");
  return one;
}
constexpr Software steady{.varies = false};

TEST(TorchGpu, TakesTheTimeOfKernelsOneByOne) {
  GpuKernels kernels(cluster(), steady, 1, 1);
  Gpu gpu(kernels, steady);
  gpu.begin_step();
  gpu.product(1, 4096, 4096, 4096, DType::bf16, OpKind::linear);
  gpu.moves(1 << 30, OpKind::add);
  const cost::GpuProfile& profile = cost::gpu_profile();
  const cost::GpuRates rates = rates_of(cluster().device);
  const double product =
      cost::gemm_time(profile, rates, {1, 4096, 4096, 4096, cost::Math::half, 2}, cost::Running::in_step).seconds;
  const double moved = cost::memory_bound_seconds(profile, rates, 1 << 30, cost::Running::in_step);
  const double busy = product / profile.gemm.training_part.value + moved;
  const StepTimes times = gpu.end_step();
  EXPECT_NEAR(times.compute_busy_s, busy, 2e-9);
  EXPECT_NEAR(times.seconds, profile.eager_issue_s.value + busy, 2e-9);
}

TEST(TorchGpu, SlowsAKernelWhileACollectiveRunsBesideIt) {
  GpuKernels kernels(cluster(), steady, 8, 1);
  Gpu gpu(kernels, steady);
  const auto step = [&] {
    gpu.begin_step();
    {
      const OnStream on(gpu, Stream::unshard);
      gpu.collective(Communicator::shard, OpKind::all_gather, 1 << 30, 0);
    }
    gpu.moves(std::int64_t{1} << 34, OpKind::add);
    return gpu.end_step().compute_busy_s;
  };
  const double alone = step(), beside = step();
  const Transfer& transfer = kernels.collective(OpKind::all_gather, 1 << 30);
  const double issue = cost::gpu_profile().eager_issue_s.value;
  EXPECT_NEAR(beside - alone, (transfer.seconds - issue) * transfer.memory_part, 1e-7);
  EXPECT_NEAR(step(), beside, 1e-9);
}

Decoder decoder(std::int64_t width, std::int64_t layers) {
  return {.width = width,
          .ffn = 4 * width,
          .layers = layers,
          .heads = width / 64,
          .kv_heads = width / 64,
          .vocab = 1024,
          .positions = 4096};
}

TorchRun run_of(Runtime runtime, std::int64_t tokens) {
  TorchRun run;
  run.runtime = runtime, run.model = decoder(2048, 8), run.batch = {1, tokens}, run.wrap.world = 8;
  return run;
}

TEST(TorchTime, IsThatOfCommunicationWhereThereIsLittleToCompute) {
  for (const Runtime runtime : {Runtime::fsdp1, Runtime::fsdp2}) {
    Cluster slow = cluster();
    slow.intra.efficiency.value = 0.001;
    const StepTimes times = timed_run(run_of(runtime, 16), slow, steady, 3).times.back();
    EXPECT_GE(times.seconds, times.communication_busy_s);
    EXPECT_LT(times.seconds, 1.01 * times.communication_busy_s);
    EXPECT_NEAR(times.exposed_s, times.communication_busy_s, 0.01 * times.communication_busy_s);
  }
}

TEST(TorchTime, IsThatOfComputeWhereItHidesCommunication) {
  for (const Runtime runtime : {Runtime::fsdp1, Runtime::fsdp2}) {
    const StepTimes times = timed_run(run_of(runtime, 4096), cluster(), steady, 3).times.back();
    EXPECT_GT(times.communication_busy_s, 8 * times.exposed_s);
    EXPECT_LT(times.seconds - times.compute_busy_s, 1.1 * times.exposed_s + 1e-3);
  }
}

TEST(TorchTime, IsThatOfTheHostWhereKernelsAreSmall) {
  TorchRun run = run_of(Runtime::fsdp2, 8);
  run.model = decoder(64, 8), run.wrap.world = 1;
  const StepTimes times = timed_run(run, cluster(), steady, 2).times.back();
  EXPECT_GT(times.host_bound_s, 0.5 * times.seconds);
  Software compiled = steady;
  compiled.compiled = true;
  EXPECT_LT(timed_run(run, cluster(), compiled, 2).times.back().seconds, 0.6 * times.seconds);
}

/// Each micro-batch has a forward and a backward; the slack is for communication that only one of them waits for.
TEST(TorchTime, PhasesAreThoseOfAllMicroBatches) {
  for (const Runtime runtime : {Runtime::fsdp1, Runtime::fsdp2, Runtime::ddp, Runtime::zero2, Runtime::zero3}) {
    TorchRun run = run_of(runtime, 4096);
    const StepTimes one = timed_run(run, cluster(), steady, 3).times.back();
    run.micro_batches = 4;
    const StepTimes four = timed_run(run, cluster(), steady, 3).times.back();
    const double slack = 3 * one.exposed_s + 0.04 * four.seconds;
    ASSERT_LT(slack, one.backward_s) << int(runtime);  // far less than a phase that is missing
    EXPECT_NEAR(four.forward_s, 4 * one.forward_s, slack) << int(runtime);
    EXPECT_NEAR(four.backward_s, 4 * one.backward_s, slack) << int(runtime);
    EXPECT_NEAR(four.forward_s + four.backward_s + four.update_s, four.seconds, 1e-9) << int(runtime);
  }
}

/// Gathers and frees of the blocks of one step of FSDP1.
struct Traffic {
  std::vector<Nanoseconds> issued, freed;
  bool serial = true;
};

Traffic traffic_of(const TorchRun& run, const Software& software) {
  GpuKernels kernels(cluster(), software, run.wrap.world, run.wrap.replicas);
  Gpu gpu(kernels, software);
  gpu.keep_trace();
  TorchSteps training(run, gpu);
  for (int i = 0; i < 3; ++i) training.step();
  Traffic traffic;
  Nanoseconds end = 0;
  std::map<std::pair<bool, std::uint32_t>, Nanoseconds> last_use;
  for (const Ran& ran : gpu.ran()) {
    if (ran.kind == OpKind::all_gather || ran.kind == OpKind::reduce_scatter) {
      traffic.serial &= ran.span.start >= end;
      end = ran.span.end;
      if (ran.kind == OpKind::all_gather) traffic.issued.push_back(ran.issued);
    } else if (ran.stream == Stream::compute && ran.unit > 0 && ran.kind != OpKind::adamw) {
      last_use[{ran.backward, ran.unit}] = ran.span.end;
    }
  }
  for (const auto& [visit, when] : last_use) traffic.freed.push_back(when);
  std::ranges::sort(traffic.freed);
  return traffic;
}

/// With prefetch, a gather is issued when the third free before it is done; without, the second. Seen in PyTorch by
/// tracing; the root's gather is the first.
TEST(TorchTime, BlocksTheHostUntilUnitsAreFree) {
  for (const auto& [prefetch, apart] : {std::pair{BackwardPrefetch::pre, 3}, std::pair{BackwardPrefetch::none, 2}}) {
    TorchRun run = run_of(Runtime::fsdp1, 4096);
    run.wrap.backward_prefetch = prefetch;
    const Traffic traffic = traffic_of(run, steady);
    EXPECT_TRUE(traffic.serial);
    ASSERT_EQ(traffic.issued.size(), 17u);
    ASSERT_EQ(traffic.freed.size(), 16u);
    for (std::size_t gather = 10; gather < 17; ++gather)  // of backward
      EXPECT_GE(traffic.issued[gather], traffic.freed[gather - 1 - static_cast<std::size_t>(apart)]) << gather;
    run.wrap.limits_gathers = false;
    EXPECT_LT(traffic_of(run, steady).issued.back(), traffic.freed[2]);
  }
}

TEST(TorchTime, PrefetchHidesGathersBehindBackward) {
  TorchRun run = run_of(Runtime::fsdp1, 2048);
  const auto exposed = [&](BackwardPrefetch prefetch) {
    run.wrap.backward_prefetch = prefetch;
    return timed_run(run, cluster(), steady, 3).times.back().exposed_s;
  };
  const double pre = exposed(BackwardPrefetch::pre), none = exposed(BackwardPrefetch::none);
  GpuKernels kernels(cluster(), steady, 8, 1);
  const double block = 12 * 2048.0 * 2048;
  const double gather = kernels.collective(OpKind::all_gather, 2 * block).seconds;
  EXPECT_GT(none - pre, 6 * gather);  // those of seven blocks, the last is never prefetched
}

}  // namespace
}  // namespace foreshard::sim::torch
