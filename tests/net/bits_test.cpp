// Where the ranks of a run are changes none of its bits.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "two_nodes.hpp"

namespace foreshard::net {
namespace {

namespace fs = std::filesystem;
using faults::Result;
using testing::HasSubstr;

struct Case {
  const char* name;
  Order order;
  const char* arguments;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr Case cases[] = {
    {"full_shard", Order::blocks, ""},
    {"shard_grad_op", Order::blocks, "--parallel.strategy=shard_grad_op"},
    {"no_shard", Order::blocks, "--parallel.strategy=no_shard"},
    {"zero1", Order::blocks, "--parallel.strategy=zero1"},
    {"hybrid_sharded_in_nodes", Order::blocks, "--parallel.strategy=hybrid_shard --parallel.shard_degree=2"},
    {"hybrid_sharded_across_nodes", Order::cyclic, "--parallel.strategy=hybrid_shard --parallel.shard_degree=2"},
    {"reshard_in_nodes", Order::blocks, "--parallel.reshard_after_forward=2"},
    {"reshard_across_nodes", Order::cyclic, "--parallel.reshard_after_forward=2"},
    {"bf16", Order::blocks, "--precision.param=bf16 --precision.reduce=bf16"},
    {"bf16_hybrid_accumulating", Order::blocks,
     "--parallel.strategy=hybrid_shard --parallel.shard_degree=2 --precision.param=bf16 --precision.reduce=bf16 "
     "--train.global_batch_size=8 --parallel.accumulation=reduce_scatter"},
};

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Loss and gradient norm of each step, all digits.
std::vector<std::string> losses_of(const fs::path& run_folder) {
  std::vector<std::string> losses;
  std::ifstream file(run_folder / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("loss")) losses.push_back(json["loss"].dump() + " " + json["grad_norm"].dump());
  }
  return losses;
}

/// The ranks' parameters and optimizer states after a step, by the names of their files.
std::map<std::string, std::string> state_of(const fs::path& run_folder, int step) {
  std::map<std::string, std::string> state;
  for (const auto& entry :
       fs::recursive_directory_iterator(run_folder / "checkpoints" / fmt::format("step-{:08}", step)))
    if (entry.path().extension() == ".safetensors") state[entry.path().filename()] = text_of(entry.path());
  return state;
}

class Bits : public TwoNodes, public testing::WithParamInterface<Case> {
 protected:
  static constexpr int steps = 6, half = steps / 2;

  std::string command(const char* name, const std::string& more) const {
    return faults::training(
        ranks, data.path(),
        fmt::format("--run.name={} --train.steps={} --checkpoint.freq={} --trace.enable=false {} {}", name, steps, half,
                    GetParam().arguments, more));
  }
  fs::path latest(const char* name) const { return data.path() / "runs" / name / "latest"; }
};

/// Two nodes go on from a checkpoint of one: kernels that are chosen by their time, as of bf16 products, are the same
/// then.
TEST_P(Bits, AreThoseOfOneNode) {
  const Result one = faults::run(command("one", ""));
  ASSERT_EQ(one.exit_code, 0) << one.output;
  EXPECT_THAT(one.output, HasSubstr("4 over mpi shared memory, "));
  const std::string goes_on =
      fmt::format("--checkpoint.resume={}/checkpoints/step-{:08}", latest("one").string(), half);
  const Result two = faults::run(across(command("two", goes_on), GetParam().order));
  ASSERT_EQ(two.exit_code, 0) << two.output;
  EXPECT_THAT(two.output, HasSubstr("4 over mpi shared memory inside nodes, mpi messages between them"));
  EXPECT_THAT(two.output, HasSubstr("2 on this node"));

  auto losses = losses_of(latest("one"));
  ASSERT_EQ(losses.size(), steps);
  losses.erase(losses.begin(), losses.begin() + half);
  EXPECT_EQ(losses, losses_of(latest("two")));
  const auto state = state_of(latest("one"), steps);
  EXPECT_EQ(state.size(), ranks);
  EXPECT_TRUE(state == state_of(latest("two"), steps)) << "parameters or moments differ";
}

INSTANTIATE_TEST_SUITE_P(Strategies, Bits, testing::ValuesIn(cases),
                         [](const auto& test) { return std::string(test.param.name); });

class AcrossNodes : public TwoNodes {};

TEST_F(AcrossNodes, AKilledRankEndsAllRanks) {
  const std::string job = faults::training(ranks, data.path(), "--train.steps=1000000 --checkpoint.freq=1");
  const std::string kill = fmt::format(
      "sh -c \"{} & until ls {}/runs/train/latest/checkpoints/step-* >/dev/null 2>&1; do sleep 0.05; done; "
      "kill -KILL \\$(pgrep -n foreshard-train); wait \\$!\"",
      job, data.path().string());
  const Result result = faults::run(across(kill));
  EXPECT_NE(result.exit_code, 0) << result.output;
  EXPECT_NE(result.exit_code, 124) << "did not end: " << result.output;
}

}  // namespace
}  // namespace foreshard::net
