// How many collectives a step issues and what they carry, by the formulas of the FSDP paper (PVLDB 16(12), section 3.2)
// and of PyTorch's strategies: N units besides the root, F ranks that share a copy, R copies, k micro-batches.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/query.hpp"
#include "tiny.hpp"

namespace foreshard::plan {
namespace {

constexpr std::int64_t N = 4;

struct Totals {
  std::int64_t gathers = 0, scatters = 0, sums = 0;
  double wire_bytes = 0;  ///< of gathers, reduce-scatters and all-reduces
  friend bool operator==(const Totals&, const Totals&) = default;
};

Totals totals_of(const Plan& plan) {
  Totals totals;
  for (const Segment* segment : plan.sequence())
    for (const Op& op : plan.ops_of(*segment)) {
      totals.gathers += op.kind == OpKind::all_gather;
      totals.scatters += op.kind == OpKind::reduce_scatter;
      totals.sums += op.kind == OpKind::all_reduce;
      if (op.phase != Phase::update) totals.wire_bytes += op.wire_bytes;
    }
  return totals;
}

struct Case {
  Keep keep = Keep::visit;
  Accumulation accumulation = Accumulation::reduce;
};

Plan plan_of(const Mesh& mesh, int k, Case c = {}) {
  ScheduleOptions options{.keep = c.keep, .accumulation = c.accumulation, .micro_batches = k};
  return build_plan(tiny_graph(N), mesh, options);
}

std::int64_t gathers(const Mesh& mesh, int k, Case c = {}) { return totals_of(plan_of(mesh, k, c)).gathers; }
std::int64_t scatters(const Mesh& mesh, int k, Case c = {}) { return totals_of(plan_of(mesh, k, c)).scatters; }
std::int64_t sums(const Mesh& mesh, int k, Case c = {}) { return totals_of(plan_of(mesh, k, c)).sums; }

constexpr Mesh full{.inner = 8}, hybrid{.replicas = 2, .inner = 4}, resharded{.outer = 4, .inner = 2};

TEST(CollectiveCount, OfGathersByWhatIsKept) {
  for (const Mesh& mesh : {full, hybrid, resharded})
    for (const int k : {1, 2, 3, 5}) {
      EXPECT_EQ(gathers(mesh, k), 1 + 2 * N * k) << "each unit forward and backward, the root once a step";
      EXPECT_EQ(gathers(mesh, k, {Keep::micro_batch}), 1 + N * k);
      EXPECT_EQ(gathers(mesh, k, {Keep::step}), 1 + N);
    }
}

TEST(CollectiveCount, OfReductionsByAccumulation) {
  for (const int k : {1, 2, 3, 5}) {
    EXPECT_EQ(scatters(full, k), (N + 1) * k);
    EXPECT_EQ(scatters(full, k, {.accumulation = Accumulation::no_sync}), N + 1);
    EXPECT_EQ(sums(full, k), 0);
    EXPECT_EQ(scatters(hybrid, k), (N + 1) * k);
    EXPECT_EQ(sums(hybrid, k), (N + 1) * k);
    EXPECT_EQ(scatters(hybrid, k, {.accumulation = Accumulation::reduce_scatter}), (N + 1) * k);
    EXPECT_EQ(sums(hybrid, k, {.accumulation = Accumulation::reduce_scatter}), N + 1);
    EXPECT_EQ(scatters(hybrid, k, {.accumulation = Accumulation::no_sync}), N + 1);
    EXPECT_EQ(sums({.replicas = 8}, k), (N + 1) * k);
    EXPECT_EQ(sums({.replicas = 8}, k, {.accumulation = Accumulation::no_sync}), N + 1);
  }
}

/// Bytes of all units padded, and of the root alone.
struct Model {
  double all = 0, root = 0;
};
Model model_of(const Plan& plan) {
  Model model;
  for (const FlatParameter& unit : plan.units) model.all += 4.0 * static_cast<double>(unit.padded_elements);
  model.root = 4.0 * static_cast<double>(plan.units[0].padded_elements);
  return model;
}

double wire(const Mesh& mesh, int k, Case c, double (*formula)(const Model& m, double k)) {
  const Plan plan = plan_of(mesh, k, c);
  return totals_of(plan).wire_bytes - formula(model_of(plan), k);
}

TEST(CollectiveCount, BytesOnTheWireFollowTheClosedFormulas) {
  for (const int k : {1, 3}) {
    // M (F−1)/F for each pass over the model: two gathers (the root's is one a step) and one reduce-scatter.
    EXPECT_NEAR(
        wire(full, k, {}, [](const Model& m, double n) { return 7. / 8 * (3 * n * m.all - (2 * n - 1) * m.root); }), 0,
        1e-6);
    EXPECT_NEAR(wire(full, k, {Keep::micro_batch},
                     [](const Model& m, double n) { return 7. / 8 * (2 * n * m.all - (n - 1) * m.root); }),
                0, 1e-6);
    EXPECT_NEAR(
        wire(full, k, {Keep::step, Accumulation::no_sync}, [](const Model& m, double) { return 7. / 4 * m.all; }), 0,
        1e-6);
    // Hybrid: as full within the group, and 2 M/F (R−1)/R for the replicas' all-reduce of the shard.
    EXPECT_NEAR(wire(hybrid, k, {},
                     [](const Model& m, double n) {
                       return 3. / 4 * (3 * n * m.all - (2 * n - 1) * m.root) + n * 2 * m.all / 4 / 2;
                     }),
                0, 1e-6);
    EXPECT_NEAR(wire({.replicas = 8}, k, {}, [](const Model& m, double n) { return n * 2 * 7. / 8 * m.all; }), 0, 1e-6);
    // Resharded to two neighbours: backward gathers half of each unit instead of 7/8.
    EXPECT_NEAR(wire(resharded, k, {},
                     [](const Model& m, double n) {
                       const double units = m.all - m.root;
                       return 7. / 8 * (n * units + m.root) + n * units / 2 + n * 7. / 8 * m.all;
                     }),
                0, 1e-6);
  }
}

TEST(CollectiveCount, SumsThatRanksCannotShareEvenlyAreThoseOfTheFirst) {
  // The loss is two doubles. Of 3 or more ranks the first adds up neither and receives both sums; of 2 it adds up one.
  for (const int ranks : {2, 3, 4, 64}) {
    const Plan plan = plan_of({.inner = ranks}, 1);
    const auto loss = std::ranges::find(plan.ops, OpKind::sum_loss, &Op::kind);
    ASSERT_NE(loss, plan.ops.end());
    EXPECT_EQ(loss->wire_bytes, 16) << ranks;
  }
}

}  // namespace
}  // namespace foreshard::plan
