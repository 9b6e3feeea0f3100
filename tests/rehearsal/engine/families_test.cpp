// Models of every family on one, two and four rehearsed devices, against one rank on processor cores in double: in f32
// as they are, and in bf16 with micro-batches, recomputation and everything offloaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "families.hpp"
#include "rehearsed.hpp"

namespace foreshard::parity {
namespace {

using plan::Mesh;

constexpr std::int64_t rows = 24;

RunSetup setup_of(const Family& family, const Mesh& mesh, int micro_batches = 1) {
  RunSetup setup{.settings = settings_of(family.model, family.seq, rows, mesh, micro_batches)};
  setup.learning_rates = {1e-2, 1e-2, 1e-2};
  setup.batch = [&family](std::int64_t step) { return family.batch(rows, step); };
  return setup;
}

const Outcome& truth_of(const Family& family) {
  static std::map<std::string, Outcome> truths;
  if (!truths.contains(family.name)) truths[family.name] = without_noise(family, run(setup_of(family, {})));
  return truths[family.name];
}

struct Tolerance {
  double loss, norm, gradient;
};

void expect_like(const Outcome& truth, const Outcome& seen, const Tolerance& tolerance) {
  for (std::size_t i = 0; i < truth.losses.size(); ++i) {
    EXPECT_NEAR(seen.losses[i], truth.losses[i], tolerance.loss * truth.losses[i]) << "step " << i + 1;
    EXPECT_NEAR(seen.grad_norms[i], truth.grad_norms[i], tolerance.norm * truth.grad_norms[i]) << "step " << i + 1;
  }
  EXPECT_LE(distance(truth.first_gradients, seen.first_gradients), tolerance.gradient);
  EXPECT_THAT(rehearsal::reports(), testing::IsEmpty());
}

class RehearsedFamily : public testing::TestWithParam<std::tuple<Family, Mesh>> {
 protected:
  const Family& family = std::get<0>(GetParam());
  const Mesh& mesh = std::get<1>(GetParam());
};

TEST_P(RehearsedFamily, EqualsOneRank) {
  const Outcome seen = without_noise(family, run_rehearsed(setup_of(family, mesh)));
  expect_like(truth_of(family), seen, {1e-5, 1e-4, 1e-4});
}

TEST_P(RehearsedFamily, FollowsOneRankInHalves) {
  RunSetup setup = setup_of(family, mesh, 3);
  setup.settings.schedule.precision.parameters = DType::bf16;
  setup.settings.schedule.recompute.mode = plan::Recompute::Mode::full;
  setup.settings.schedule.offload = {true, true, true};
  expect_like(truth_of(family), without_noise(family, run_rehearsed(setup)), {8e-3, 5e-2, 0.1});
}

INSTANTIATE_TEST_SUITE_P(Odd, RehearsedFamily,
                         testing::Combine(testing::ValuesIn(families()),
                                          testing::Values(Mesh{}, full_shard(2), no_shard(2), Mesh{2, 1, 2},
                                                          Mesh{1, 2, 2})),
                         [](const auto& test) {
                           const Mesh& mesh = std::get<1>(test.param);
                           return std::get<0>(test.param).name + "_" + std::to_string(mesh.replicas) + "x" +
                                  std::to_string(mesh.outer) + "x" + std::to_string(mesh.inner);
                         });

}  // namespace
}  // namespace foreshard::parity
