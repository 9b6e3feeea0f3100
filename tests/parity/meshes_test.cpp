// Every mesh, strategy and way to accumulate computes what one rank computes; in fp32 on equal power-of-two worlds, to
// the bit where the order of additions is the same.
#include <gtest/gtest.h>

#include "expect.hpp"

namespace foreshard::parity {
namespace {

using plan::Accumulation;
using plan::Keep;
using plan::Mesh;

const model::GptConfig odd_model{
    .layers = 3, .width = 15, .heads = 3, .vocab_size = 37, .max_seq_len = 11, .ffn_width = 23};
constexpr std::int64_t seq = 7, rows = 24;
constexpr int micro_batches = 3;
constexpr double tolerance = 1e-11;  // Adam amplifies the rounding of gradients that are nothing but rounding

RunSetup setup_of(const Mesh& mesh, int k = 1) {
  RunSetup setup{.settings = settings_of(odd_model, seq, rows, mesh, k)};
  setup.learning_rates = std::vector<double>(5, 1e-2);
  setup.batch = [](std::int64_t step) { return formula_batch(rows, seq, odd_model.vocab_size, step, 5); };
  return setup;
}

RunSetup in_float(RunSetup setup) {
  setup.dtype = DType::f32;
  setup.reference = false;
  return setup;
}

std::string text_of(const Mesh& mesh) {
  return std::to_string(mesh.replicas) + "x" + std::to_string(mesh.outer) + "x" + std::to_string(mesh.inner);
}

/// All boxes of `world` ranks.
std::vector<Mesh> factorisations(int world) {
  std::vector<Mesh> meshes;
  for (int replicas = 1; replicas <= world; ++replicas)
    for (int outer = 1; outer <= world; ++outer)
      if (world % (replicas * outer) == 0) meshes.push_back({replicas, outer, world / (replicas * outer)});
  return meshes;
}

const Outcome& one_rank() {
  static const Outcome outcome = run(setup_of({}));
  return outcome;
}

TEST(Meshes, EveryFactorisationOfEightEqualsOneRank) {
  for (const Mesh& mesh : factorisations(8)) expect_close(one_rank(), run(setup_of(mesh)), tolerance, text_of(mesh));
}

TEST(Meshes, EveryFactorisationOfTwelveEqualsOneRank) {
  for (const Mesh& mesh : factorisations(12))
    expect_close(one_rank(), run(setup_of(mesh, 2)), tolerance, text_of(mesh));
}

TEST(Meshes, EveryFactorisationOfEightHasTheSameBits) {
  const Outcome expected = run(in_float(setup_of(full_shard(8), micro_batches)));
  for (const Mesh& mesh : factorisations(8))
    expect_same_bits(expected, run(in_float(setup_of(mesh, micro_batches))), text_of(mesh));
}

class MeshStrategies : public testing::TestWithParam<std::tuple<Keep, Accumulation>> {
 protected:
  static RunSetup setup_of(const Mesh& mesh) {
    RunSetup setup = parity::setup_of(mesh, micro_batches);
    std::tie(setup.settings.schedule.keep, setup.settings.schedule.accumulation) = GetParam();
    return setup;
  }
};

TEST_P(MeshStrategies, EqualOneRank) {
  for (const Mesh& mesh : {Mesh{1, 1, 4}, Mesh{2, 1, 4}, Mesh{2, 2, 2}, Mesh{4, 1, 1}, Mesh{2, 1, 1}})
    if (rows % (mesh.world_size() * micro_batches) == 0)
      expect_close(one_rank(), run(setup_of(mesh)), tolerance, text_of(mesh));
}

TEST_P(MeshStrategies, WhatIsKeptChangesNoBit) {
  const Mesh mesh{2, 2, 2};
  RunSetup full = in_float(setup_of(mesh));
  full.settings.schedule.keep = Keep::visit;
  expect_same_bits(run(full), run(in_float(setup_of(mesh))), "");
}

INSTANTIATE_TEST_SUITE_P(All, MeshStrategies,
                         testing::Combine(testing::Values(Keep::visit, Keep::micro_batch, Keep::step),
                                          testing::Values(Accumulation::reduce, Accumulation::reduce_scatter,
                                                          Accumulation::no_sync)));

TEST(Meshes, UnitsMayDifferInWhatTheyKeep) {
  RunSetup mixed = in_float(setup_of({2, 2, 2}, micro_batches));
  const Outcome expected = run(mixed);
  mixed.settings.schedule.keep_of_unit = {Keep::step, Keep::micro_batch, Keep::step, Keep::visit};
  expect_same_bits(expected, run(mixed), "mixed");
}

TEST(Meshes, LimitsInBytesChangeNoBit) {
  RunSetup setup = in_float(setup_of({1, 2, 4}, micro_batches));
  const Outcome expected = run(setup);
  for (const std::int64_t bytes : {1, 20'000, 1'000'000}) {
    setup.settings.schedule.gather_limit = plan::unlimited;
    setup.settings.schedule.gather_limit_bytes = bytes;
    expect_same_bits(expected, run(setup), std::to_string(bytes) + " bytes");
  }
}

}  // namespace
}  // namespace foreshard::parity
