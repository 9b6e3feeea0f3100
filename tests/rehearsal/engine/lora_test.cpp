// LoRA on rehearsed devices, against one rank on processor cores in double, after steps of plain descent: what its
// matrices have moved by is the sum of their gradients. B begins with zeros, so A moves from the second step on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "families.hpp"
#include "rehearsed.hpp"

namespace foreshard::parity {
namespace {

using plan::Mesh;

constexpr std::int64_t rows = 24;
constexpr double rate = 4;

RunSetup setup_of(const Mesh& mesh, std::int64_t rank, int micro_batches = 1) {
  const Family& family = families()[2];
  auto model = std::get<model::LlamaConfig>(family.model);
  model.lora.rank = rank;
  RunSetup setup{.settings = settings_of(model, family.seq, rows, mesh, micro_batches)};
  setup.settings.schedule.update = plan::OpKind::sgd;
  setup.optimizer.weight_decay = 0;
  setup.learning_rates = {rate, rate, rate, rate};
  setup.batch = [&family](std::int64_t step) { return family.batch(rows, step); };
  return setup;
}

Tensors at_first(RunSetup setup) {
  setup.learning_rates = {};
  return run(setup).weights;
}

bool is_trained(const std::string& name) { return name.find(".lora_") != std::string::npos; }

double largest(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

std::vector<double> difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> difference;
  for (std::size_t i = 0; i < a.size(); ++i) difference.push_back(a[i] - b[i]);
  return difference;
}

/// To a thousandth of what each moved by, and to the roundings of weights in f32: at first and after each of four
/// steps.
void expect_moved_alike(const Tensors& before, const Tensors& truth, const Tensors& seen) {
  for (const auto& [name, values] : truth) {
    if (!is_trained(name)) continue;
    const double moved = largest(difference(values, before.at(name)));
    EXPECT_LE(largest(difference(values, seen.at(name))), 1e-3 * moved + 5 * 0x1p-24 * largest(values)) << name;
  }
}

/// The most that an element of any A moved.
double move_of_a(const Tensors& before, const Tensors& after) {
  double most = 0;
  for (const auto& [name, values] : after)
    if (name.ends_with("lora_A.weight")) most = std::max(most, largest(difference(values, before.at(name))));
  return most;
}

class RehearsedLora : public testing::TestWithParam<Mesh> {};

TEST_P(RehearsedLora, MovesAsOneRankInDouble) {
  for (const std::int64_t rank : {1, 3, 8}) {
    const RunSetup setup = setup_of({}, rank);
    const Tensors before = at_first(setup), truth = run(setup).weights;
    ASSERT_GT(move_of_a(before, truth), 1e-2) << "gradients of A are tried too";
    expect_moved_alike(before, truth, run_rehearsed(setup_of(GetParam(), rank, 2)).weights);
    EXPECT_THAT(rehearsal::reports(), testing::IsEmpty());
  }
}

TEST_P(RehearsedLora, KeepsTheBitsOfItsBase) {
  RunSetup setup = setup_of(GetParam(), 3);
  const Tensors after = run_rehearsed(setup).weights;
  setup.learning_rates = {};
  for (const auto& [name, values] : run_rehearsed(setup).weights)
    EXPECT_NE(values == after.at(name), is_trained(name)) << name;
}

INSTANTIATE_TEST_SUITE_P(Meshes, RehearsedLora, testing::Values(Mesh{}, full_shard(2), Mesh{2, 1, 2}),
                         [](const auto& test) { return std::to_string(test.param.world_size()) + "_ranks"; });

}  // namespace
}  // namespace foreshard::parity
