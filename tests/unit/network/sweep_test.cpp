#include "sim/network/sweep.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace foreshard::sim::network {
namespace {

using model::OpKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double mib = 1 << 20;
constexpr std::array sizes{mib, 64 * mib};

std::vector<SweepRow> rows_of(OpKind kind, const Group& group) {
  return sweep(read_cluster("aws-p4d"), kind, group, sizes);
}

// nccl-tests doc/PERFORMANCE.md: 7/8 of the algorithm's bandwidth for gathers among 8 ranks, 14/8 for all-reduces.
TEST(Sweep, BusBandwidthIsThatOfNcclTests) {
  for (const auto& [kind, eighths] :
       {std::pair{OpKind::all_gather, 7.0}, {OpKind::reduce_scatter, 7.0}, {OpKind::all_reduce, 14.0}})
    for (const SweepRow& row : rows_of(kind, {8, 8}))
      EXPECT_DOUBLE_EQ(row.bus_bandwidth * 8, row.bytes / row.cost.seconds * eighths);
}

TEST(Sweep, HasTheTimesOfTheModelThatPredictsSteps) {
  const Cluster cluster = read_cluster("aws-p4d");
  const auto rows = rows_of(OpKind::all_gather, {32, 8});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].bytes, 64 * mib);
  EXPECT_EQ(rows[1].cost.seconds, collective_time(cluster, {}, OpKind::all_gather, 64 * mib, {32, 8}).seconds);
}

TEST(Sweep, ReadsListsAndDoublings) {
  EXPECT_THAT(parse_sizes("512,4K,1.5M,1MB"), ElementsAre(512, 4096, 1.5 * mib, 1e6));
  EXPECT_THAT(parse_sizes("1M:4M"), ElementsAre(mib, 2 * mib, 4 * mib));
  EXPECT_THAT(parse_sizes("3M:11M"), ElementsAre(3 * mib, 6 * mib));
}

TEST(Sweep, RefusesWhatIsNotASize) {
  for (const char* text : {"", "many", "1M,", "0", "-1", "4M:1M", "1M:", "1M:2M:4M"}) {
    try {
      parse_sizes(text);
      ADD_FAILURE() << text << " was taken";
    } catch (const InputError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  }
}

TEST(Sweep, JsonAndTableShowTheSameRows) {
  const auto rows = rows_of(OpKind::all_reduce, {16, 8});
  const auto json = sweep_json(rows);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["bytes"], mib);
  EXPECT_EQ(json[1]["time_s"], rows[1].cost.seconds);
  EXPECT_THAT(sweep_text(rows), HasSubstr("67108864"));
}

}  // namespace
}  // namespace foreshard::sim::network
