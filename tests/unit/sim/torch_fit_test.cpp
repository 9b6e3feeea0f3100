#include "sim/runtimes/torch_fit.hpp"

#include <gtest/gtest.h>

namespace foreshard::sim::torch {
namespace {

using allocator::Fit;
using allocator::gib;
using allocator::RunPhase;

/// A model on its own device, with room for `device_gib`.
allocator::FitVerdict fit_on(double device_gib) {
  Cluster cluster = read_cluster("dgx-a100");
  cluster.device.memory_bytes.value = device_gib * double(gib);
  TorchJob job;
  job.run.runtime = Runtime::fsdp2, job.run.batch = {1, 1024}, job.run.wrap.world = 8;
  job.run.model = Decoder{
      .width = 1024, .ffn = 4096, .layers = 12, .heads = 16, .kv_heads = 16, .vocab = 32'000, .positions = 1024};
  return fit_of(predict(job, cluster));
}

TEST(TorchFit, JudgesEachPhase) {
  const allocator::FitVerdict ample = fit_on(80);
  ASSERT_EQ(ample.phases.size(), 3u);
  EXPECT_EQ(ample.fit(), Fit::fits);
  EXPECT_EQ(ample.phases[1].memory.phase, RunPhase::first_step);
  for (const allocator::PhaseVerdict& phase : ample.phases) {
    EXPECT_GE(phase.memory.reserved, phase.memory.allocated);
    EXPECT_EQ(phase.room, 80 * gib - ample.outside - phase.memory.reserved);
  }
  EXPECT_GT(ample.phases[2].memory.allocated, ample.phases[0].memory.allocated);
}

/// With just what is outside and half of the steady step's tensors, a step fails and the model does not.
TEST(TorchFit, SaysInWhichPhaseMemoryEnds) {
  const allocator::FitVerdict ample = fit_on(80);
  const double half = double(ample.outside + ample.phases[2].memory.allocated / 2) / double(gib);
  const allocator::FitVerdict little = fit_on(half);
  EXPECT_EQ(little.fit(), Fit::no);
  EXPECT_EQ(little.phases.front().memory.phase, RunPhase::init);
  EXPECT_NE(little.decisive().memory.phase, RunPhase::init);
  EXPECT_NE(little.text().find("ran out of memory"), std::string::npos) << little.text();
}

}  // namespace
}  // namespace foreshard::sim::torch
