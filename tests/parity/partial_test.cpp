// Steps that use only part of the parameters: however these are sharded, training computes what one rank computes
// (which `Golden.*/partial` compares with PyTorch), and what a step leaves out keeps its bits.
#include <gtest/gtest.h>

#include <cstring>

#include "expect.hpp"
#include "local_run.hpp"

namespace foreshard::parity {
namespace {

using plan::Mesh;
using plan::Wrap;
using Policy = Wrap::Policy;

const model::GptConfig odd_model{
    .layers = 3, .width = 15, .heads = 3, .vocab_size = 37, .max_seq_len = 11, .ffn_width = 23};
constexpr std::int64_t seq = 7, rows = 12;
const plan::PartialSteps partial{
    .blocks = {"h.1"}, .every = 3, .frozen = {"h.0.mlp.*", "h.2.*", "wpe.*"}, .frozen_steps = 4};

RunSetup setup_of(const Mesh& mesh, const Wrap& wrap = {}, int k = 1) {
  RunSetup setup{.settings = settings_of(odd_model, seq, rows, mesh, k)};
  setup.settings.schedule.wrap = wrap;
  setup.settings.partial = partial;
  setup.learning_rates = std::vector<double>(7, 1e-2);
  setup.batch = [](std::int64_t step) { return formula_batch(rows, seq, odd_model.vocab_size, step, 5); };
  return setup;
}

const std::vector<Mesh> meshes{{1, 1, 2}, {1, 1, 3}, {2, 1, 2}, {4, 1, 1}, {1, 2, 2}};
const std::vector<Wrap> wraps{
    {}, {.policy = Policy::blocks, .count = 2}, {.policy = Policy::size, .count = 1}, {.policy = Policy::none}};

TEST(Partial, StepsEqualThoseOfOneRank) {
  const Outcome one = run(setup_of({}));
  for (const Wrap& wrap : wraps) {
    for (const Mesh& mesh : meshes) expect_close(one, run(setup_of(mesh, wrap)), 1e-11);
    expect_close(one, run(setup_of({1, 1, 2}, wrap, 3)), 1e-11, "accumulated");
    expect_close(one, run(setup_of({}, wrap, 2)), 1e-11, "one rank, accumulated");
  }
}

TEST(Partial, StepsDifferFromWholeOnes) {
  RunSetup whole = setup_of({});
  whole.settings.partial = {};
  EXPECT_GT(distance(run(whole).weights, run(setup_of({})).weights), 1e-3);
}

TEST(Partial, StepsWorkWithEverythingOffloaded) {
  RunSetup setup = setup_of({1, 1, 2}, {}, 2);
  const Outcome kept = run(setup);
  setup.settings.schedule.offload = {true, true, true};
  expect_same_bits(kept, run(setup));
}

/// Bits of what steps leave out: parameters and moments, by unit and piece.
using Bits = std::vector<std::vector<std::byte>>;

Bits idle_bits(train::TrainingRank& rank, int index, const plan::Plan& of_step) {
  Bits bits;
  for (const plan::FlatParameter& unit : of_step.units)
    for (const plan::ShardPart& part : plan::parts_of_shard(unit, index)) {
      if (!part.piece->idle) continue;
      for (const plan::BufferId buffer : {unit.parameter_shard, unit.first_moment, unit.second_moment}) {
        const auto all = rank.copy_of(buffer);
        const auto some = std::span(all).subspan(static_cast<std::size_t>(part.at * size_bytes(of_step.dtype)),
                                                 static_cast<std::size_t>(part.count * size_bytes(of_step.dtype)));
        bits.emplace_back(some.begin(), some.end());
      }
    }
  return bits;
}

TEST(Partial, StepsKeepTheBitsOfWhatTheyLeaveOut) {
  constexpr int world = 3;
  RunSetup setup = setup_of({1, 1, world}, {.policy = Policy::blocks, .count = 2});
  std::vector<Bits> before(world);
  std::atomic<int> compared = 0;
  setup.before_step = [&](train::TrainingRank& rank, int index, std::int64_t step) {
    before[static_cast<std::size_t>(index)] = idle_bits(rank, index, rank.plan_of(step));
  };
  setup.after_step = [&](const StepEnd& end) {
    const int index = end.communicator.rank();
    const Bits after = idle_bits(end.rank, index, end.rank.plan_of(end.step));
    compared += static_cast<int>(after.size());
    EXPECT_EQ(before[static_cast<std::size_t>(index)], after) << "step " << end.step;
  };
  run(setup);
  EXPECT_GT(compared, 100);
}

TEST(Partial, StepsMoveNoBytesForBlocksTheyLeaveOut) {
  std::vector<std::uint64_t> gathers, reductions;
  RunSetup setup = setup_of({1, 1, 2});
  setup.settings.partial.frozen = {};
  comm::Counters before;
  setup.after_step = [&](const StepEnd& end) {
    if (end.communicator.rank() != 0) return;
    const comm::Counters now = end.communicator.counters();
    gathers.push_back(now.all_gather.calls - before.all_gather.calls);
    reductions.push_back(now.reduce_scatter.calls - before.reduce_scatter.calls);
    before = now;
  };
  run(setup);
  const std::vector<std::uint64_t> expected_gathers{7, 7, 5, 7, 7, 5, 7}, expected_reductions{4, 4, 3, 4, 4, 3, 4};
  EXPECT_EQ(gathers, expected_gathers) << "N + (N - 1) of N units";
  EXPECT_EQ(reductions, expected_reductions) << "one a unit";
}

}  // namespace
}  // namespace foreshard::parity
