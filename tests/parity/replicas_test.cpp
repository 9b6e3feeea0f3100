// Ranks that hold the same shard hold the same bits, and where they do not it is noticed and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "local_run.hpp"
#include "train/replica_check.hpp"

namespace foreshard::parity {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

const model::GptConfig small_model{.layers = 2, .width = 15, .heads = 3, .vocab_size = 37, .max_seq_len = 11};
constexpr std::int64_t seq = 7, rows = 24;

RunSetup setup_of(const plan::Mesh& mesh) {
  RunSetup setup{.settings = settings_of(small_model, seq, rows, mesh), .dtype = DType::f32, .reference = false};
  setup.learning_rates.resize(4);
  setup.batch = [](std::int64_t step) { return formula_batch(rows, seq, small_model.vocab_size, step); };
  return setup;
}

/// What the check says on every rank after every step; `change` may spoil a rank before.
std::vector<std::string> faults_of(
    RunSetup setup, const std::function<void(std::int64_t step, int rank, train::TrainingRank&)>& change) {
  std::vector<std::string> faults;
  std::mutex mutex;
  setup.after_step = [&](const StepEnd& end) {
    change(end.step, end.communicator.rank(), end.rank);
    const std::string fault = train::replica_fault(end.communicator, end.rank);
    const std::lock_guard lock(mutex);
    faults.push_back(fault);
  };
  run(setup);
  return faults;
}

class Replicas : public testing::TestWithParam<plan::Mesh> {};

TEST_P(Replicas, StayEqual) {
  EXPECT_THAT(faults_of(setup_of(GetParam()), [](std::int64_t, int, train::TrainingRank&) {}), Each(""));
}

INSTANTIATE_TEST_SUITE_P(Meshes, Replicas,
                         testing::Values(plan::Mesh{4, 1, 1}, plan::Mesh{2, 1, 2}, plan::Mesh{2, 2, 2},
                                         plan::Mesh{3, 1, 2}, plan::Mesh{1, 1, 4}));

struct Flip {
  plan::Mesh mesh;
  int rank = 0;
  const char* differs;
};

/// The parameter of which a rank's shard of `unit` holds element `index`.
std::string parameter_at(const train::TrainingRank& rank, int index_of_rank, std::uint32_t unit, std::int64_t index) {
  const plan::FlatParameter& flat = rank.plan().units[unit];
  const std::int64_t at = rank.plan().mesh.shard_index(index_of_rank) * flat.shard_elements + index;
  for (const plan::FlatPiece& piece : flat.pieces)
    if (at >= piece.offset && at < piece.offset + piece.elements)
      return rank.graph().parameters[piece.parameter.value].name;
  return "padding";
}

class FlippedBit : public testing::TestWithParam<Flip> {};

TEST_P(FlippedBit, IsNamedByRankAndParameterOnAllRanks) {
  const auto& [mesh, spoilt, differs] = GetParam();
  std::string parameter;
  RunSetup setup = setup_of(mesh);
  setup.learning_rates.resize(1);
  const auto faults = faults_of(setup, [&](std::int64_t, int index, train::TrainingRank& rank) {
    if (index != spoilt) return;
    rank.change(rank.parameter_shard(1),
                [](std::span<std::byte> shard) { reinterpret_cast<std::uint32_t*>(shard.data())[301] ^= 1; });
    parameter = parameter_at(rank, index, 1, 301);
  });
  EXPECT_THAT(faults, Each(AllOf(HasSubstr(differs), HasSubstr(parameter + " of unit u0"))));
  EXPECT_NE(parameter, "padding");
}

INSTANTIATE_TEST_SUITE_P(Meshes, FlippedBit,
                         testing::Values(Flip{{2, 1, 1}, 1, "(rank 1 unlike rank 0)"},
                                         Flip{{3, 1, 1}, 0, "(rank 0 unlike rank 1)"},
                                         Flip{{3, 1, 1}, 2, "(rank 2 unlike rank 0)"},
                                         Flip{{2, 1, 2}, 3, "(rank 3 unlike rank 1)"},
                                         Flip{{2, 2, 2}, 6, "(rank 6 unlike rank 2)"}));

}  // namespace
}  // namespace foreshard::parity
