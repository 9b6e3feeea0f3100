// Jobs of several processes with the CUDA engine: how the module is loaded, which device a rank takes, how ranks find
// each other, how they go on from a checkpoint, and how they end when one of them does.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <future>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "unit/base/temporary_folder.hpp"

namespace foreshard::faults {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RehearsedJob : public testing::Test {
 protected:
  /// On a node of so many devices.
  void SetUp() override { devices(2); }
  static void devices(int count) { setenv("FORESHARD_REHEARSAL_DEVICES", std::to_string(count).c_str(), 1); }

  std::string arguments(const std::string& name, const std::string& more) const {
    return fmt::format(
        "--model.layers=2 --model.width=16 --model.heads=2 --model.ffn_width=24 --train.seq_len=8 "
        "--train.local_batch_size=2 --metrics.log_freq=1000 --run.name={} {}",
        name, more);
  }
  std::string on_devices(int ranks, const std::string& name, const std::string& more = "") const {
    return training(ranks, data.path(), arguments(name, "--engine.device=cuda " + more));
  }

  /// What a run says that is refused.
  std::string refusal(int ranks) const {
    const Result result = run(on_devices(ranks, "refused"));
    EXPECT_EQ(result.exit_code, 2) << result.output;
    return result.output;
  }
  /// The same where modules are looked for in this folder.
  std::string refusal_with_modules_of(const std::filesystem::path& folder) const {
    setenv("FORESHARD_MODULE_PATH", folder.c_str(), 1);
    std::string said = refusal(1);
    unsetenv("FORESHARD_MODULE_PATH");
    return said;
  }

  /// Loss and norm of each step of a run.
  std::vector<std::pair<double, double>> steps_of(const std::string& name) const {
    std::vector<std::pair<double, double>> steps;
    std::ifstream file(data.path() / "runs" / name / "latest/metrics.jsonl");
    for (std::string line; std::getline(file, line);)
      if (const auto json = nlohmann::json::parse(line, nullptr, false); json.is_object() && json.contains("loss"))
        steps.emplace_back(json["loss"], json["grad_norm"]);
    return steps;
  }

  DataFolder data;
};

void expect_done(const Result& result) { EXPECT_EQ(result.exit_code, 0) << result.output; }

TEST_F(RehearsedJob, TrainsAsProcessorCoresDo) {
  const Result on_cores = run(training(2, data.path(), arguments("cores", "--train.steps=3")));
  expect_done(on_cores);
  for (const char* strategy : {"full_shard", "no_shard"}) {
    const Result result = run(on_devices(2, strategy, fmt::format("--train.steps=3 --parallel.strategy={}", strategy)));
    expect_done(result);
    EXPECT_THAT(result.output, AllOf(HasSubstr("device       Rehearsal (0000:01:00.0"), HasSubstr("2 visible"),
                                     HasSubstr("NCCL 2.28"), HasSubstr("matrix products are right")));
    const auto expected = steps_of("cores"), seen = steps_of(strategy);
    ASSERT_EQ(expected.size(), 3U);
    ASSERT_EQ(seen.size(), 3U);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      EXPECT_NEAR(seen[i].first, expected[i].first, 1e-5 * expected[i].first) << "step " << i + 1;
      EXPECT_NEAR(seen[i].second, expected[i].second, 1e-4 * expected[i].second) << "step " << i + 1;
    }
  }
}

TEST_F(RehearsedJob, GoesOnFromACheckpointToTheSameBits) {
  expect_done(run(on_devices(2, "whole", "--train.steps=4 --checkpoint.freq=2")));
  const std::string checkpoint = (data.path() / "runs/whole/latest/checkpoints/step-00000002").string();
  expect_done(run(on_devices(2, "resumed", "--train.steps=4 --checkpoint.resume=" + checkpoint)));
  const auto whole = steps_of("whole"), resumed = steps_of("resumed");
  ASSERT_EQ(whole.size(), 4U);
  ASSERT_EQ(resumed.size(), 2U);
  EXPECT_EQ(resumed[0], whole[2]);
  EXPECT_EQ(resumed[1], whole[3]);
}

TEST_F(RehearsedJob, TakesTheDeviceThatEachRankSees) {
  const auto rank = [&](int device) {
    return fmt::format("-n 1 env CUDA_VISIBLE_DEVICES={} {}", device,
                       program(data.path(), arguments("own", "--engine.device=cuda")));
  };
  const std::string launcher = std::string(FORESHARD_MPIRUN).substr(0, std::string(FORESHARD_MPIRUN).rfind(' '));
  const Result result = run(fmt::format("{} {} : {}", launcher, rank(1), rank(0)));
  expect_done(result);
  EXPECT_THAT(result.output, AllOf(HasSubstr("0000:02:00.0"), HasSubstr("1 visible")));
}

TEST_F(RehearsedJob, IsRefusedWhereTwoRanksHaveOneDevice) {
  devices(1);
  EXPECT_THAT(refusal(2), AllOf(HasSubstr("ranks 0 and 1 have the same device"), HasSubstr("0000:01:00.0")));
}

TEST_F(RehearsedJob, IsRefusedWithoutADevice) {
  devices(0);
  EXPECT_THAT(refusal(2), AllOf(HasSubstr("no CUDA device is visible"), HasSubstr("engine.device=cpu")));
}

TEST_F(RehearsedJob, IsRefusedWithoutTheModule) {
  EXPECT_THAT(refusal_with_modules_of("/nowhere"),
              AllOf(HasSubstr("/nowhere/libforeshard_cuda.so"), HasSubstr("no such file")));
}

TEST_F(RehearsedJob, IsRefusedWithACutModule) {
  const TemporaryFolder folder;
  const auto copy = folder / "libforeshard_cuda.so";
  std::filesystem::copy_file(FORESHARD_BIN "/libforeshard_cuda.so", copy);
  std::filesystem::resize_file(copy, std::filesystem::file_size(copy) / 3);
  EXPECT_THAT(refusal_with_modules_of(folder.path()),
              AllOf(HasSubstr("FORESHARD_MODULE_PATH"), HasSubstr("it was cut short")));
}

/// A module with all symbols, and nothing that tells where it is from.
TEST_F(RehearsedJob, IsRefusedWithAModuleOfOtherSources) {
  const TemporaryFolder folder;
  const std::string source = folder.path().string() + "/module.c",
                    module = folder.path().string() + "/libforeshard_cuda.so";
  std::ofstream(source) << "void foreshard_make_cuda_engine(void) {}\n"
                           "unsigned long foreshard_module_layout(void) { return 1; }\n"
                           "const char* foreshard_module_commit(void) { return \"0123456789ab\"; }\n";
  ASSERT_EQ(std::system(("cc -shared -fPIC -o " + module + " " + source).c_str()), 0);
  EXPECT_THAT(refusal_with_modules_of(folder.path()),
              AllOf(HasSubstr("built of other sources"), HasSubstr("commit 0123456789ab")));
}

/// The other ranks wait for its collectives on their devices, and a host that only asks them would do so for ever.
class LostRank : public RehearsedJob, public testing::WithParamInterface<int> {};

TEST_P(LostRank, EndsAll) {
  const std::string command =
      on_devices(2, "train", "--train.steps=1000000 --engine.watchdog_s=4 --trace.enable=false");
  auto running = std::async(std::launch::async, [&] { return run(command); });
  const int process = process_of(data.path(), 1);
  ASSERT_GT(process, 0);
  kill(process, GetParam());
  const Result result = running.get();
  EXPECT_NE(result.exit_code, 124) << "it did not end";
  EXPECT_NE(result.exit_code, 0) << result.output;
  if (GetParam() != SIGSTOP) return;
  EXPECT_EQ(result.exit_code, 6) << result.output;
  EXPECT_THAT(result.output, HasSubstr("rank 1 (process " + std::to_string(process) + ") is stopped or dead"));
}

INSTANTIATE_TEST_SUITE_P(By, LostRank, testing::Values(SIGKILL, SIGSTOP));

}  // namespace
}  // namespace foreshard::faults
