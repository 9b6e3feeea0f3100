#include "sim/network/collective.hpp"

#include <gtest/gtest.h>

namespace foreshard::sim::network {
namespace {

constexpr double gib = 1 << 30;

double seconds(const char* cluster, const Group& group) {
  return collective_time(read_cluster(cluster), {}, model::OpKind::all_reduce, gib, group).seconds;
}

TEST(CollectiveTime, OneRankNeedsNone) { EXPECT_EQ(seconds("8x-h100", {1, 1}), 0); }

TEST(CollectiveTime, EightReplicaGroupsOnFourAdaptersTakeTwiceAsLong) {
  EXPECT_NEAR(seconds("aws-p4de", {8, 1, 8}) / seconds("aws-p4de", {8, 1, 1}), 8 * 12 / 50.0, 0.05);
}

TEST(CollectiveTime, ReplicaGroupsWithAnAdapterEachDoNotDisturbEachOther) {
  EXPECT_DOUBLE_EQ(seconds("8x-h100", {8, 1, 8}), seconds("8x-h100", {8, 1, 1}));
}

TEST(CollectiveTime, SmallMessagesTakeFewChannels) {
  const Cluster cluster = read_cluster("8x-h100");
  const auto channels = [&](double bytes) {
    return collective_time(cluster, {}, model::OpKind::all_gather, bytes, {8, 8}).channels;
  };
  EXPECT_EQ(channels(1024), 1);
  EXPECT_EQ(channels(gib), 24);
}

}  // namespace
}  // namespace foreshard::sim::network
