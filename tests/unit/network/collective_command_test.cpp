#include "sim/network/collective_command.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "sim/network/collective.hpp"

namespace foreshard::sim::network {
namespace {

using ::testing::HasSubstr;

/// What the command prints.
std::string output_of(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "foreshard-plan collective");
  testing::internal::CaptureStdout();
  const int code = collective_command(static_cast<int>(arguments.size()), arguments.data());
  EXPECT_EQ(code, 0);
  return testing::internal::GetCapturedStdout();
}

std::string refusal_of(std::vector<const char*> arguments) {
  try {
    output_of(std::move(arguments));
  } catch (const InputError& error) {
    testing::internal::GetCapturedStdout();
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "nothing was refused";
}

TEST(CollectiveCommand, FillsNodesAndPrintsTheModelsTimes) {
  const auto json = nlohmann::json::parse(
      output_of({"--machine.cluster=aws-p4d", "--op=reduce_scatter", "--ranks=16", "--bytes=1M:4M", "--json"}));
  EXPECT_EQ(json["ranks_per_node"], 8);
  ASSERT_EQ(json["sizes"].size(), 3u);
  const Cluster cluster = read_cluster("aws-p4d");
  const auto time = collective_time(cluster, {}, model::OpKind::reduce_scatter, 4 << 20, {16, 8});
  EXPECT_DOUBLE_EQ(json["sizes"][2]["time_s"].get<double>(), time.seconds);
}

TEST(CollectiveCommand, RanksOfAGroupMayLieOneOnEachNode) {
  const char* cluster = "--machine.cluster=aws-p4d";
  const auto spread = nlohmann::json::parse(
      output_of({cluster, "--op=all_reduce", "--ranks=4", "--machine.ranks_per_node=1", "--bytes=64M", "--json"}));
  const auto time = collective_time(read_cluster("aws-p4d"), {}, model::OpKind::all_reduce, 64 << 20, {4, 1});
  EXPECT_DOUBLE_EQ(spread["sizes"][0]["time_s"].get<double>(), time.seconds);
}

TEST(CollectiveCommand, TheTableNamesWhatItIsOf) {
  const std::string text = output_of({"--machine.cluster=aws-p4d", "--bytes=1M"});
  for (const char* part : {"all_gather among 8 ranks, 8 a node", "A100", "busbw", "1048576"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(CollectiveCommand, RefusesWhatNoClusterCanDo) {
  EXPECT_THAT(refusal_of({}), HasSubstr("machine.cluster is not set"));
  EXPECT_THAT(refusal_of({"--machine.cluster=aws-p4d", "--ranks=12"}), HasSubstr("12 ranks, 8 a node"));
  EXPECT_THAT(refusal_of({"--machine.cluster=aws-p4d", "--ranks=32", "--machine.ranks_per_node=16"}),
              HasSubstr("nodes of 8 GPUs"));
  EXPECT_THAT(refusal_of({"--machine.cluster=aws-p4d", "--op=broadcast"}), HasSubstr("broadcast"));
  EXPECT_THAT(refusal_of({"--machine.cluster=aws-p4d", "--ranks=1"}), HasSubstr("ranks"));
}

}  // namespace
}  // namespace foreshard::sim::network
