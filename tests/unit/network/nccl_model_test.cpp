#include "sim/network/nccl_model.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace foreshard::sim::network {
namespace {

using model::OpKind;
constexpr double mib = 1 << 20, gib = 1 << 30;

double best_us(const Cluster& cluster, OpKind kind, double bytes, int nodes) {
  return choose(cluster, tuning_of({}), kind, bytes, {8 * nodes, nodes, 8}).microseconds(bytes);
}

Cluster generic(const char* name) { return read_cluster(name); }

/// Times in microseconds that follow from NCCL's formulas by hand, rounded: 1 MiB, 64 MiB, 1 GiB.
struct Row {
  const char* cluster;
  OpKind kind;
  int nodes;
  double us[3];
};

class WorkedValues : public testing::TestWithParam<Row> {};

TEST_P(WorkedValues, AreReproducedWithinTheirRounding) {
  const Row& row = GetParam();
  const double sizes[] = {mib, 64 * mib, gib};
  for (int i = 0; i < 3; ++i)
    EXPECT_NEAR(best_us(generic(row.cluster), row.kind, sizes[i], row.nodes), row.us[i], 0.51 + row.us[i] * 5e-4)
        << row.cluster << " nodes " << row.nodes << " size " << sizes[i];
}

constexpr OpKind gather = OpKind::all_gather, sum = OpKind::all_reduce;
INSTANTIATE_TEST_SUITE_P(
    Gathers, WorkedValues,
    testing::Values(Row{"8x-a100-80gb", gather, 1, {21, 277, 3947}}, Row{"8x-h100", gather, 1, {17, 195, 2642}},
                    Row{"8x-a100-80gb", gather, 2, {49, 398, 5313}}, Row{"8x-h100", gather, 2, {48, 245, 2866}},
                    Row{"8x-a100-80gb", gather, 4, {86, 484, 5563}}, Row{"8x-h100", gather, 4, {83, 301, 3035}},
                    Row{"8x-a100-80gb", gather, 16, {210, 703, 6148}}, Row{"8x-h100", gather, 16, {210, 514, 3559}},
                    Row{"8x-a100-80gb", gather, 64, {676, 1536, 7815}}, Row{"8x-h100", gather, 64, {676, 1345, 4767}}));
INSTANTIATE_TEST_SUITE_P(Sums, WorkedValues,
                         testing::Values(Row{"8x-h100", sum, 1, {28, 272, 3973}},
                                         Row{"8x-h100", sum, 2, {60, 339, 4428}},
                                         Row{"8x-h100", sum, 4, {81, 466, 5824}},
                                         Row{"8x-h100", sum, 16, {115, 558, 6046}},
                                         Row{"8x-h100", sum, 64, {149, 644, 6164}}));

TEST(NcclGraphs, AreThoseOfKnownSystems) {
  const auto ring = [](const char* name, int nodes) { return ring_graph(read_cluster(name), {8 * nodes, nodes, 8}); };
  const auto expect = [](const Graph& graph, int channels, double speed) {
    EXPECT_EQ(graph.channels, channels);
    EXPECT_DOUBLE_EQ(graph.intra, speed);
  };
  expect(ring("8x-a100-80gb", 1), 12, 20);
  expect(ring("8x-h100", 1), 12, 30);
  expect(ring("8x-b200", 1), 16, 45);
  expect(ring("8x-a100-80gb", 2), 8, 24);
  expect(ring("aws-p4d", 2), 4, 12);
  expect(ring("8x-h100", 2), 8, 45);
  expect(ring("8x-b200", 2), 8, 48);
}

TEST(NcclGraphs, ReplicaGroupsUseOneAdapter) {
  const Cluster h100 = read_cluster("8x-h100"), a100 = read_cluster("8x-a100-80gb");
  const Layout layout{4, 4, 1};
  EXPECT_EQ(ring_graph(h100, layout).channels, 2);
  EXPECT_DOUBLE_EQ(ring_graph(h100, layout).inter, 24);
  EXPECT_EQ(launched_channels(a100, layout, ring_graph(a100, layout)), 2);
}

TEST(NcclGraphs, NvlsHeadsShareLinks) {
  const Graph h100 = nvls_graph(read_cluster("8x-h100"), {8, 1, 8}),
              b200 = nvls_graph(read_cluster("8x-b200"), {8, 1, 8});
  EXPECT_EQ(h100.channels, 8);
  EXPECT_DOUBLE_EQ(h100.intra, 40);
  EXPECT_DOUBLE_EQ(h100.inter, 60);
  EXPECT_DOUBLE_EQ(b200.intra, 80);
}

TEST(NcclModel, EarlierReleasesSumByNvlsAtFiveSixths) {
  const Cluster cluster = read_cluster("8x-h100");
  const Estimate nvls =
      estimate(cluster, tuning_of({2, 27, 3}), sum, gib, {8, 1, 8}, Algorithm::nvls, Protocol::simple);
  EXPECT_NEAR(nvls.bandwidth, 8 * 40 * 5.0 / 6, 1e-9);
}

TEST(NcclModel, LatencyOfRingsGrowsWithRanksAndOfTreesWithTheirLogarithm) {
  const Cluster cluster = read_cluster("8x-h100");
  EXPECT_GT(best_us(cluster, gather, mib, 64), 3 * best_us(cluster, gather, mib, 16));
  EXPECT_LT(best_us(cluster, sum, mib, 64), 1.5 * best_us(cluster, sum, mib, 16));
}

}  // namespace
}  // namespace foreshard::sim::network
