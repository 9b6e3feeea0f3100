// What the CUDA engine promises beside the numbers.
#include "engine/cuda/executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "rehearsed.hpp"
#include "train/kernel_choice.hpp"

namespace foreshard::parity {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const model::GptConfig small{.layers = 2, .width = 16, .heads = 2, .vocab_size = 37, .max_seq_len = 8};

RunSetup setup_of(const plan::Mesh& mesh, int micro_batches = 1) {
  RunSetup setup{.settings = settings_of(small, 8, 12, mesh, micro_batches), .dtype = DType::f32, .reference = false};
  setup.learning_rates = {1e-2, 1e-2, 1e-2, 1e-2};
  setup.batch = [](std::int64_t step) { return formula_batch(12, 8, small.vocab_size, step, 5); };
  return setup;
}

engine::CudaOptions options(bool graphs) { return {.graphs = graphs}; }

void expect_equal(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.grad_norms, b.grad_norms);
  EXPECT_TRUE(a.weights == b.weights) << "weights differ";
}

class RehearsedEngine : public testing::TestWithParam<int> {};

TEST_P(RehearsedEngine, ReplaysGraphsToTheSameBitsAsOps) {
  for (const int micro_batches : {1, 2, 3}) {
    const RunSetup setup = setup_of(full_shard(GetParam()), micro_batches);
    expect_equal(run_rehearsed(setup, options(false)), run_rehearsed(setup, options(true)));
  }
}

TEST_P(RehearsedEngine, ReplaysALongStepAsSeveralGraphs) {
  const RunSetup setup = setup_of(full_shard(GetParam()), 3);
  for (const std::int64_t ops : {1, 200})
    expect_equal(run_rehearsed(setup, options(false)), run_rehearsed(setup, {.graphs = true, .graph_ops = ops}));
}

TEST_P(RehearsedEngine, DoesNotDependOnWhatStreamsTake) {
  const RunSetup setup = setup_of(full_shard(GetParam()), 2);
  const Outcome expected = run_rehearsed(setup, options(false));
  for (const std::uint64_t seed : {1, 2, 3}) {
    RunSetup delayed = setup;
    delayed.before_step = [seed](train::TrainingRank&, int rank, std::int64_t step) {
      if (rank == 0 && step == 1) rehearsal::delay_streams(seed, 300);
    };
    expect_equal(expected, run_rehearsed(delayed, options(false)));
  }
}

TEST_P(RehearsedEngine, TracedStepsHaveTheSameBits) {
  const RunSetup setup = setup_of(full_shard(GetParam()), 2);
  trace::Recorder recorder;
  RunSetup traced = setup;
  traced.recorder = &recorder;
  expect_equal(run_rehearsed(setup, options(true)), run_rehearsed(traced, options(true)));
  EXPECT_GT(recorder.take().size(), 100U);
}

TEST_P(RehearsedEngine, MovesWhatProcessorRanksMove) {
  const RunSetup setup = setup_of({2, 1, GetParam()});
  const comm::Counters seen = run_rehearsed(setup).counters, expected = run(setup).counters;
  EXPECT_EQ(seen.all_gather.received_bytes, expected.all_gather.received_bytes);
  EXPECT_EQ(seen.reduce_scatter.received_bytes, expected.reduce_scatter.received_bytes);
  EXPECT_EQ(seen.all_reduce.payload_bytes, expected.all_reduce.payload_bytes);
}

TEST_P(RehearsedEngine, TakesTheArenaThatThePlanSays) {
  RunSetup setup = setup_of(full_shard(GetParam()), 2);
  std::int64_t planned = 0, besides = 0;
  setup.after_step = [&](const StepEnd& end) {
    if (end.communicator.rank() != 0) return;
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    planned = std::max(end.rank.plan().arena_bytes, end.rank.evaluation_plan().arena_bytes);
    EXPECT_EQ(end.rank.engine().arena(plan::Space::device).size_bytes(), planned);
    EXPECT_EQ(end.rank.plan().buffers[end.rank.plan().workspace.value].size_bytes, 1 << 20);
    besides = static_cast<std::int64_t>(total - free) - planned;
  };
  run_rehearsed(setup);
  EXPECT_GT(planned, 1 << 20);
  EXPECT_LT(besides, 1 << 13) << "the step's context and parts of shards are all";
}

TEST_P(RehearsedEngine, LeavesNothingBehind) {
  run_rehearsed(setup_of(full_shard(GetParam())));
  const rehearsal::Live left = rehearsal::live();
  EXPECT_EQ(left.allocations + left.streams + left.events + left.graphs + left.communicators, 0);
}

TEST_P(RehearsedEngine, NamesRankAndStepOfAFailedKernel) {
  RunSetup setup = setup_of(full_shard(GetParam()));
  setup.before_step = [](train::TrainingRank&, int rank, std::int64_t step) {
    if (rank == 0 && step == 2) rehearsal::fail_call("kernel", 40, 700);
  };
  try {
    run_rehearsed(setup, options(false));
    FAIL() << "the run went on";
  } catch (const LibraryError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("cudaErrorIllegalAddress"), HasSubstr("of rank"),
                                             HasSubstr("in step 2"), HasSubstr("compute after")));
  }
}

TEST_P(RehearsedEngine, SaysHowMuchMemoryThereIs) {
  RunSetup setup = setup_of(full_shard(GetParam()));
  setup.engine = [] { return rehearsed(); };
  rehearsal::reset(GetParam(), 100'000);
  EXPECT_THAT([&] { run(setup); },
              testing::ThrowsMessage<InputError>(
                  testing::AllOf(HasSubstr("cudaMalloc of"), HasSubstr("free"), HasSubstr("train.local_batch_size"))));
}

INSTANTIATE_TEST_SUITE_P(Ranks, RehearsedEngine, testing::Values(1, 2, 4));

TEST(RehearsedChoices, AreOfOneDeviceLibraryAndWorkspace) {
  RunSetup setup = setup_of(full_shard(2));
  setup.after_step = [](const StepEnd& end) {
    if (end.step > 1) return;
    const engine::Engine& engine = end.rank.engine();
    engine::KernelChoices choices = train::choose_kernels(end.communicator, end.rank.plan(), end.rank.engine());
    EXPECT_GT(choices.size(), 10U);
    EXPECT_TRUE(train::usable_on_all(end.communicator, choices, engine));
    EXPECT_TRUE(train::usable_on_all(end.communicator, {}, engine));
    if (end.communicator.rank() == 1) choices["device"] += " of a later release";
    EXPECT_EQ(engine.can_use(choices), end.communicator.rank() == 0);
    EXPECT_FALSE(train::usable_on_all(end.communicator, choices, engine));
    choices.erase("device");
    EXPECT_FALSE(engine.can_use(choices));
  };
  run_rehearsed(setup);
}

TEST(RehearsedDevices, AreTakenByPlaceOnTheNode) {
  EXPECT_EQ(engine::cuda::device_of(1, 0), 0);
  EXPECT_EQ(engine::cuda::device_of(1, 3), 0) << "each rank sees its own";
  EXPECT_EQ(engine::cuda::device_of(4, 3), 3);
  EXPECT_EQ(engine::cuda::device_of(4, 5), 1);
}

TEST(RehearsedDevices, AreRefusedWhereTwoRanksHaveTheSame) {
  RunSetup setup = setup_of(full_shard(2));
  setup.engine = [] { return rehearsed(); };
  rehearsal::reset(1);
  EXPECT_THAT([&] { run(setup); }, testing::ThrowsMessage<InputError>(testing::AllOf(
                                       HasSubstr("ranks 0 and 1 have the same device"), HasSubstr("gpus-per-node"))));
}

TEST(RehearsedDevices, AreRefusedWhereNoKernelIsBuiltForThem) {
  EXPECT_NO_THROW(engine::cuda::expect_capability("NVIDIA A100-SXM4-40GB", 8, 0));
  EXPECT_THAT(
      [] { engine::cuda::expect_capability("Tesla V100-SXM2-16GB", 7, 0); },
      testing::ThrowsMessage<InputError>(testing::AllOf(HasSubstr("V100"), HasSubstr("7.0"), HasSubstr("A100"))));
}

TEST(RehearsedDevices, AreMissedWithWhatToDo) {
  RunSetup setup = setup_of(full_shard(1));
  setup.engine = [] { return rehearsed(); };
  rehearsal::reset(0);
  EXPECT_THAT([&] { run(setup); },
              testing::ThrowsMessage<InputError>(testing::AllOf(HasSubstr("no CUDA device"), HasSubstr("nvidia-smi"),
                                                                HasSubstr("engine.device=cpu"))));
}

TEST(RehearsedDevices, RememberWhereALossStoppedBeingFinite) {
  RunSetup setup = setup_of(full_shard(2), 2);
  std::vector<engine::LossFault> faults(2);
  setup.before_step = [](train::TrainingRank& rank, int index, std::int64_t step) {
    if (step != 2 || index != 1) return;
    rank.change(rank.parameter_shard(0), [](std::span<std::byte> bytes) {
      auto* shard = reinterpret_cast<float*>(bytes.data());
      std::fill_n(shard, bytes.size() / sizeof(float), std::numeric_limits<float>::quiet_NaN());
    });
  };
  setup.after_step = [&](const StepEnd& end) {
    if (end.step == 2) faults[static_cast<std::size_t>(end.communicator.rank())] = end.rank.engine().loss_fault();
  };
  const Outcome outcome = run_rehearsed(setup);
  EXPECT_TRUE(std::isnan(outcome.losses[1]));
  for (const engine::LossFault& fault : faults) EXPECT_EQ(fault.micro_batch, 0);
}

}  // namespace
}  // namespace foreshard::parity
