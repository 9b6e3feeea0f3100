#include <gtest/gtest.h>

#include <numeric>

#include "sim/runtimes/recorded_memory.hpp"
#include "sim/runtimes/torch_prediction.hpp"

namespace foreshard::sim::torch {
namespace {

using allocator::Event;
using allocator::MemoryClass;
using allocator::PeakReport;

TorchJob job_of(Runtime runtime) {
  TorchJob job;
  job.run.runtime = runtime, job.run.batch = {1, 1024}, job.run.wrap.world = 8;
  job.run.model = Decoder{
      .width = 1024, .ffn = 4096, .layers = 12, .heads = 16, .kv_heads = 16, .vocab = 32'000, .positions = 1024};
  return job;
}

double job_parameters(const TorchJob& job) {
  double sum = 0;
  for (const auto& unit : unit_shapes(job.run.model))
    for (const ParameterShape& shape : unit) sum += double(shape.elements());
  return sum;
}

std::int64_t of(const PeakReport& report, MemoryClass kind) { return report.by_class[std::size_t(kind)]; }

/// The list replays to what the run itself counted.
TEST(TorchExplained, PeaksAreThoseOfTheRun) {
  const Cluster cluster = read_cluster("dgx-a100");
  for (const Runtime runtime : {Runtime::fsdp1, Runtime::fsdp2}) {
    const TorchPrediction run = predict(job_of(runtime), cluster);
    const PeakReport report = explain_memory(job_of(runtime), cluster);
    EXPECT_EQ(report.reserved_peak, run.peaks[2].reserved);
    EXPECT_FALSE(report.out_of_memory);
    EXPECT_EQ(report.outside, run.outside_bytes);
    EXPECT_EQ(std::reduce(report.by_class.begin(), report.by_class.end()), report.allocated);
  }
}

/// Sharded fp32 parameters of 8 ranks and two moments for each; the loss of 1024 tokens is the largest request.
TEST(TorchExplained, ClassesFollowFromWhereAndHowLongMemoryLives) {
  const TorchJob job = job_of(Runtime::fsdp2);
  const PeakReport report = explain_memory(job, read_cluster("dgx-a100"));
  const double shards = job_parameters(job) * 4 / 8;
  EXPECT_NEAR(double(of(report, MemoryClass::parameters)), shards, 0.03 * shards);
  EXPECT_NEAR(double(of(report, MemoryClass::optimizer)), 2 * shards, 0.03 * 2 * shards);
  EXPECT_GT(of(report, MemoryClass::activations), 0);
  EXPECT_GT(of(report, MemoryClass::workspace), 2 * 8'519'680);
  EXPECT_GE(report.largest_request.bytes, 1023LL * 32'000 * 4);
}

TEST(TorchExplained, SaysWhatWouldLowerThePeak) {
  TorchJob job = job_of(Runtime::fsdp1);
  job.run.batch = {4, 1024};
  const PeakReport report = explain_memory(job, read_cluster("dgx-a100"));
  ASSERT_FALSE(report.knobs.empty());
  EXPECT_EQ(report.knobs[0].name, "recompute activations (full)") << report.text();
  EXPECT_LT(report.knobs[0].saves, of(report, MemoryClass::activations));
}

TEST(TorchExplained, AFailureIsExplainedWhereItHappens) {
  Cluster cluster = read_cluster("dgx-a100");
  const PeakReport ample = explain_memory(job_of(Runtime::fsdp2), cluster);
  cluster.device.memory_bytes.value = double(ample.outside + ample.allocated / 2);
  const PeakReport report = explain_memory(job_of(Runtime::fsdp2), cluster);
  EXPECT_TRUE(report.out_of_memory);
  EXPECT_NE(report.moment.phase, "");
  EXPECT_GT(report.moment.bytes, 0);
}

}  // namespace
}  // namespace foreshard::sim::torch
