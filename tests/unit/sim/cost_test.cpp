#include <gtest/gtest.h>

#include <cmath>

#include "sim/cost/collective_cost.hpp"
#include "sim/cost/interpolate.hpp"
#include "sim/cost/kernel_cost.hpp"

namespace foreshard::sim::cost {
namespace {

TEST(Interpolate, IsExactAtKnownPlacesAndStraightInLogarithmsBetween) {
  const std::vector<Known> known{{{100, 1, 1}, 4}, {{10, 1, 1}, 1}};
  EXPECT_DOUBLE_EQ(interpolate(known, {10, 1, 1}), 1);
  EXPECT_DOUBLE_EQ(interpolate(known, {100, 1, 1}), 4);
  EXPECT_NEAR(interpolate(known, {std::sqrt(1000), 1, 1}), 2, 1e-12);  // the middle, 10^1.5; of 4^0 and 4^1 it is 4^0.5
}

TEST(Interpolate, IsConstantOutsideOneDimension) {
  const std::vector<Known> known{{{10, 1, 1}, 1}, {{100, 1, 1}, 4}};
  EXPECT_DOUBLE_EQ(interpolate(known, {1, 1, 1}), 1);
  EXPECT_DOUBLE_EQ(interpolate(known, {1e6, 1, 1}), 4);
}

TEST(Interpolate, ScatteredPlacesAreExactAndNeverLeaveTheirRange) {
  const std::vector<Known> known{{{8, 8, 8}, 10}, {{64, 8, 8}, 20}, {{64, 512, 64}, 100}, {{512, 512, 512}, 110}};
  for (const Known& point : known) EXPECT_DOUBLE_EQ(interpolate(known, point.extents), point.value);
  for (double m = 1; m < 5000; m *= 3)
    for (double n = 1; n < 5000; n *= 3) {
      const double value = interpolate(known, {m, n, 100});
      EXPECT_GE(value, 10);
      EXPECT_LE(value, 110);
    }
}

Machine machine_with(KernelTable table) {
  Machine machine;
  machine.cores = 2;
  machine.kernel_floor_s = {1e-6, "test"};
  machine.kernels.push_back(std::move(table));
  return machine;
}

// 2·10^6 elements in 2 ms is 1 ns each; so half the elements take 1 ms, and 10 elements no less than the floor.
TEST(KernelCost, FollowsTheMeasuredRateDownToTheFloor) {
  const Machine machine = machine_with({OpKind::gelu, false, 1, {{{.rows = 2000, .cols = 1000}, 2e-3}}, "test"});
  EXPECT_DOUBLE_EQ(kernel_seconds(machine, OpKind::gelu, false, {.rows = 1000, .cols = 1000}, 1), 1e-3);
  EXPECT_DOUBLE_EQ(kernel_seconds(machine, OpKind::gelu, false, {.rows = 2, .cols = 5}, 1), 1e-6);
}

TEST(KernelCost, InterpolatesBetweenNumbersOfBusyCores) {
  Machine machine = machine_with({OpKind::adamw, false, 1, {{{.rows = 1000}, 1e-3}}, "alone"});
  machine.kernels.push_back({OpKind::adamw, false, 5, {{{.rows = 1000}, 3e-3}}, "together"});
  const auto at = [&](int busy) { return kernel_seconds(machine, OpKind::adamw, false, {.rows = 1000}, busy); };
  EXPECT_DOUBLE_EQ(at(1), 1e-3);
  EXPECT_DOUBLE_EQ(at(2), 1.5e-3);
  EXPECT_DOUBLE_EQ(at(5), 3e-3);
  EXPECT_DOUBLE_EQ(at(9), 3e-3);
}

// AdamW moves 7 words an element, Lion 5 and SGD 3: read and write the parameter and each moment, read the gradient.
TEST(KernelCost, OptimizersWithoutATableCostTheBytesTheyMove) {
  Machine machine = machine_with({OpKind::adamw, false, 1, {{{.rows = 1000}, 7e-3}}, "adamw"});
  const auto of = [&](OpKind kind) { return kernel_seconds(machine, kind, false, {.rows = 1000}, 1); };
  EXPECT_DOUBLE_EQ(of(OpKind::adam), 7e-3);
  EXPECT_DOUBLE_EQ(of(OpKind::lion), 5e-3);
  EXPECT_DOUBLE_EQ(of(OpKind::sgd_momentum), 5e-3);
  EXPECT_DOUBLE_EQ(of(OpKind::sgd), 3e-3);
  machine.kernels.push_back({OpKind::lion, false, 1, {{{.rows = 1000}, 4e-3}}, "lion"});
  EXPECT_DOUBLE_EQ(of(OpKind::lion), 4e-3) << "a measured one is preferred";
}

// With parameters in bf16, 24 bytes of 28 for AdamW, 16 of 20 for Lion and 8 of 12 for SGD.
TEST(KernelCost, UpdatesOfParametersInBf16CostTheBytesTheyMove) {
  Machine machine = machine_with({OpKind::adamw, false, 1, {{{.rows = 1000}, 28e-3}}, "adamw"});
  const auto of = [&](OpKind kind, DType parameters) {
    return kernel_seconds(machine, kind, false, {.rows = 1000}, 1, nullptr, parameters);
  };
  EXPECT_DOUBLE_EQ(of(OpKind::adamw, DType::bf16), 24e-3);
  EXPECT_DOUBLE_EQ(of(OpKind::lion, DType::bf16), 16e-3);
  EXPECT_DOUBLE_EQ(of(OpKind::sgd, DType::bf16), 8e-3);
  machine.kernels.push_back({OpKind::lion, false, 1, {{{.rows = 1000}, 10e-3}}, "lion"});
  EXPECT_DOUBLE_EQ(of(OpKind::lion, DType::bf16), 8e-3) << "a table of its own kind is preferred";
  machine.kernels.push_back({OpKind::adamw, false, 1, {{{.rows = 1000}, 26e-3}}, "adamw", DType::bf16});
  EXPECT_DOUBLE_EQ(of(OpKind::adamw, DType::bf16), 26e-3) << "and one of its own type above all";
  EXPECT_DOUBLE_EQ(of(OpKind::adamw, DType::f32), 28e-3);
}

TEST(KernelCost, PrefersTheTableThatAccumulatesAlike) {
  const Sizes sizes{.rows = 100, .cols = 100, .inner = 100};
  Machine machine = machine_with({OpKind::linear_weight_grad, false, 1, {{sizes, 1e-3}}, "overwrite"});
  EXPECT_DOUBLE_EQ(kernel_seconds(machine, OpKind::linear_weight_grad, true, sizes, 1), 1e-3);
  machine.kernels.push_back({OpKind::linear_weight_grad, true, 1, {{sizes, 2e-3}}, "add"});
  std::string source;
  EXPECT_DOUBLE_EQ(kernel_seconds(machine, OpKind::linear_weight_grad, true, sizes, 1, &source), 2e-3);
  EXPECT_EQ(source, "add");
}

// All of 4 cores at efficiency 0.75 are 3 times one; two threads lie a third of the way from 1 to 3.
TEST(KernelCost, ATeamIsFasterByItsMeasuredEfficiency) {
  Machine machine;
  machine.cores = 4;
  machine.team_efficiency = {0.75, "test"};
  EXPECT_DOUBLE_EQ(team_speed(machine, 1), 1);
  EXPECT_DOUBLE_EQ(team_speed(machine, 4), 3);
  EXPECT_DOUBLE_EQ(team_speed(machine, 2), 1 + 2.0 / 3);
}

Machine collective_machine() {
  Machine machine;
  machine.cores = 2;
  machine.collectives.push_back({OpKind::all_gather, 2, {{1e3, 1e-6}, {1e5, 1e-4}, {1e7, 1e-2}}, "measured"});
  machine.collectives.push_back({OpKind::all_reduce, 2, {{1e3, 5e-6}, {1e7, 5e-2}}, "measured"});
  machine.network_latency_s = {1e-5, "assumed"};
  machine.network_bytes_per_s = {1e9, "assumed"};
  return machine;
}

TEST(CollectiveCost, FollowsTheTableOfThatManyRanks) {
  const Machine machine = collective_machine();
  const auto at = [&](double bytes) { return collective_seconds(machine, OpKind::all_gather, bytes, {2, 2}); };
  EXPECT_DOUBLE_EQ(at(1), 1e-6);  // latency
  EXPECT_NEAR(at(1e4), 1e-5, 1e-15);
  EXPECT_DOUBLE_EQ(at(1e5), 1e-4);
  EXPECT_DOUBLE_EQ(at(1e8), 1e-1);  // beyond the largest: its bandwidth
}

// From 2 to 4 ranks on 2 cores: (3/4)/(1/2) as many bytes each, and two ranks for each core: 3 times. The latency
// doubles.
TEST(CollectiveCost, ExtrapolatesRankCountsAndSaysSo) {
  std::string source;
  const double seconds = collective_seconds(collective_machine(), OpKind::all_gather, 1e7, {4, 4}, &source);
  EXPECT_DOUBLE_EQ(seconds, 2e-6 + 3 * (1e-2 - 1e-6));
  EXPECT_EQ(source, "extrapolated from 2 ranks: measured");
}

// 8 ranks, 2 on each of 4 nodes: besides the node's own part, 2 latencies, and 2 ranks receive 6/8 of the bytes each;
// twice for a sum.
TEST(CollectiveCost, AddsTheNetworkBetweenNodes) {
  const Machine machine = collective_machine();
  EXPECT_DOUBLE_EQ(collective_seconds(machine, OpKind::all_gather, 1e7, {8, 2}), 1e-2 + 2e-5 + 15e-3);
  EXPECT_DOUBLE_EQ(collective_seconds(machine, OpKind::all_reduce, 1e7, {8, 2}), 5e-2 + 2 * (2e-5 + 15e-3));
}

// As above, while 2 other ranks of the node do the same in a group beside.
TEST(CollectiveCost, EqualGroupsShareTheNetwork) {
  const CollectiveTime time = collective_time(collective_machine(), OpKind::all_gather, 1e7, {8, 2, 2});
  EXPECT_DOUBLE_EQ(time.on_node_s, 1e-2);
  EXPECT_DOUBLE_EQ(time.network_s, 2e-5 + 30e-3);
}

TEST(CollectiveCost, SumsOfTheNormAndTheLossAreAllReduces) {
  EXPECT_DOUBLE_EQ(collective_seconds(collective_machine(), OpKind::sum_norm, 192, {2, 2}), 5e-6);
}

}  // namespace
}  // namespace foreshard::sim::cost
