// Runs that are killed, signalled or short of room, and go on.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command.hpp"

namespace foreshard::faults {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

using Losses = std::map<std::int64_t, std::string>;  ///< loss and gradient norm as written, by step

/// Of the newest run.
Losses losses_of(const fs::path& run_folder) {
  Losses losses;
  std::ifstream file(run_folder / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("loss"))
      losses[json["step"]] = json["loss"].dump() + json["grad_norm"].dump();
    if (json.is_object() && json.contains("val_loss"))
      losses[-json["step"].get<std::int64_t>()] = json["val_loss"].dump();
  }
  return losses;
}

class Resume : public testing::Test {
 protected:
  static constexpr std::int64_t steps = 400;

  std::string command(const std::string& name, const std::string& arguments) const {
    return training(2, data.path(),
                    fmt::format("--run.name={} --train.steps={} --model.dropout=0.1 --data.shuffle=true "
                                "--train.local_batch_size=1 --train.global_batch_size=4 --metrics.log_freq=100 "
                                "--trace.enable=false --data.val_path={}/text_val.bin --validation.freq=50 "
                                "--validation.batches=1 {}",
                                name, steps, data.path().string(), arguments));
  }

  /// Starts a run and, when the checkpoint of step 40 is there, sends `signal` to the rank that was started last.
  Result run_and_signal(const std::string& name, const char* signal) const {
    return run(
        fmt::format("sh -c \"{} & while ! ls {}/runs/{}/*/checkpoints/step-00000040 >/dev/null 2>&1; do sleep 0.01; "
                    "done; kill -{} \\$(pgrep -n -f 'foreshard-train.*{}.*run.name={}'); wait \\$!\"",
                    command(name, "--checkpoint.freq=20"), data.path().string(), name, signal,
                    data.path().filename().string(), name));
  }

  fs::path latest(const std::string& name) const { return data.path() / "runs" / name / "latest"; }

  nlohmann::json record_of(const std::string& name) const {
    return nlohmann::json::parse(std::ifstream(latest(name) / "run.json"));
  }

  /// The newest run of `name` ends as the whole one, and wrote the same numbers.
  void expect_as_whole(const std::string& name) {
    const Result whole = run(command("whole", ""));
    ASSERT_EQ(whole.exit_code, 0) << whole.output;
    const Losses expected = losses_of(latest("whole")), resumed = losses_of(latest(name));
    EXPECT_EQ(std::ssize(expected), steps + steps / 50) << "steps and validations";
    EXPECT_TRUE(resumed.contains(steps));
    for (const auto& [step, numbers] : resumed) EXPECT_EQ(numbers, expected.at(step)) << "step " << step;
  }

  DataFolder data;
};

TEST_F(Resume, ARunWithAKilledRankGoesOnToTheSameLosses) {
  const Result killed = run_and_signal("job", "KILL");
  ASSERT_NE(killed.exit_code, 0) << killed.output;
  ASSERT_FALSE(losses_of(latest("job")).contains(steps)) << "killed too late";
  const Result resumed = run(command("job", "--checkpoint.freq=20 --checkpoint.resume=auto"));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("resumed      after step "));
  EXPECT_GE(record_of("job")["resumed_from"]["step"], 40);
  expect_as_whole("job");
}

TEST_F(Resume, ASignalToOneRankSavesJointlyAndAsksToBeRequeued) {
  const Result stopped = run_and_signal("job", "USR1");
  ASSERT_EQ(stopped.exit_code, 75) << stopped.output;
  EXPECT_THAT(record_of("job")["exit_reason"].get<std::string>(), HasSubstr("stopped by SIGUSR1 after step"));
  const std::int64_t last = losses_of(latest("job")).rbegin()->first;
  EXPECT_TRUE(fs::exists(latest("job") / fmt::format("checkpoints/step-{:08}/manifest.json", last)));
  const Result resumed = run(command("job", "--checkpoint.resume=auto"));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(record_of("job")["resumed_from"]["step"], last);
  expect_as_whole("job");
  EXPECT_EQ(losses_of(latest("job")).upper_bound(0)->first, last + 1);
}

TEST_F(Resume, OfAFinishedRunDoesNothing) {
  const std::string arguments = fmt::format("--checkpoint.dir={}/saved --checkpoint.resume=auto", data.path().string());
  const auto short_run = [&] {
    return run(training(2, data.path(), arguments + " --checkpoint.freq=1 --train.steps=3"));
  };
  const Result first = short_run(), second = short_run();
  EXPECT_EQ(first.exit_code, 0) << first.output;
  EXPECT_THAT(first.output, HasSubstr("none to resume from"));
  EXPECT_EQ(second.exit_code, 0) << second.output;
  EXPECT_THAT(second.output, HasSubstr("nothing left to do"));
}

TEST_F(Resume, ADamagedCheckpointIsNamedSetAsideAndTheOneBeforeUsed) {
  const std::string arguments = fmt::format("--checkpoint.dir={}/saved --checkpoint.freq=2", data.path().string());
  ASSERT_EQ(run(training(2, data.path(), arguments + " --train.steps=4")).exit_code, 0);
  const fs::path file = data.path() / "saved/step-00000004/rank-00001.safetensors";
  fs::resize_file(file, fs::file_size(file) - 1);
  const Result next = run(training(2, data.path(), arguments + " --train.steps=4 --checkpoint.resume=auto"));
  EXPECT_EQ(next.exit_code, 0) << next.output;
  EXPECT_THAT(next.output, AllOf(HasSubstr(file.string() + " is not whole"), HasSubstr("resumed      after step 2")));
  EXPECT_TRUE(fs::exists(data.path() / "saved/damaged-step-00000004"));
  EXPECT_TRUE(fs::exists(data.path() / "saved/step-00000004/manifest.json")) << "written anew";
}

TEST_F(Resume, CheckpointsOfAnotherRunAreNotMixedWith) {
  const std::string arguments = fmt::format("--checkpoint.dir={}/saved --checkpoint.freq=2", data.path().string());
  ASSERT_EQ(run(training(2, data.path(), arguments + " --train.steps=4")).exit_code, 0);
  const Result anew = run(training(2, data.path(), arguments));
  EXPECT_EQ(anew.exit_code, 2) << anew.output;
  EXPECT_THAT(anew.output, AllOf(HasSubstr("step-00000004"), HasSubstr("--checkpoint.resume=auto")));
  const Result other = run(training(2, data.path(), arguments + " --checkpoint.resume=auto --model.layers=3"));
  EXPECT_EQ(other.exit_code, 2) << other.output;
  EXPECT_THAT(other.output, HasSubstr("model.layers is 2 in the checkpoint and 3 here"));
}

TEST_F(Resume, OtherDataOfTheSameSizeAreRefused) {
  const std::string arguments = fmt::format("--checkpoint.dir={}/saved --checkpoint.freq=2", data.path().string());
  ASSERT_EQ(run(training(2, data.path(), arguments + " --train.steps=2")).exit_code, 0);
  const fs::path file = data.path() / "text_train.bin";
  fs::rename(file, data.path() / "moved_train.bin");
  const std::string moved = fmt::format("{} --train.steps=4 --checkpoint.resume=auto --data.path={}/moved_train.bin",
                                        arguments, data.path().string());
  EXPECT_THAT(run(training(2, data.path(), moved)).output, HasSubstr("resumed      after step 2"));
  fs::rename(data.path() / "moved_train.bin", file);
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(1024 + 2 * 1500).put('\7');
  const Result other = run(training(2, data.path(), arguments + " --train.steps=6 --checkpoint.resume=auto"));
  EXPECT_EQ(other.exit_code, 2) << other.output;
  EXPECT_THAT(other.output, AllOf(HasSubstr("data.content is"), testing::Not(HasSubstr("data.sequences"))));
}

/// Both runs have a root and one unit, each as large as the other's.
TEST_F(Resume, UnitsOfTheSameSizeThatHoldOtherParametersAreRefused) {
  const std::string arguments = fmt::format("--checkpoint.dir={}/saved --checkpoint.freq=2", data.path().string());
  ASSERT_EQ(run(training(2, data.path(), arguments + " --train.steps=2 --units.policy=list:h.0")).exit_code, 0);
  const Result other =
      run(training(2, data.path(), arguments + " --train.steps=3 --checkpoint.resume=auto --units.policy=list:h.1"));
  EXPECT_EQ(other.exit_code, 2) << other.output;
  EXPECT_THAT(other.output, AllOf(HasSubstr("units.u0.parameters is \"h.0.ln_1.weight to h.0.mlp.c_proj.bias"),
                                  HasSubstr("and \"h.1.ln_1.weight to h.1.mlp.c_proj.bias")));
}

TEST_F(Resume, ARenamedCheckpointIsRefusedAndTheOneBeforeItUsed) {
  const std::string arguments = fmt::format("--checkpoint.dir={}/saved --checkpoint.freq=2", data.path().string());
  ASSERT_EQ(run(training(2, data.path(), arguments + " --train.steps=4")).exit_code, 0);
  fs::rename(data.path() / "saved/step-00000004", data.path() / "saved/step-00000009");
  const Result again = run(training(2, data.path(), arguments + " --train.steps=5 --checkpoint.resume=auto"));
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, AllOf(HasSubstr("its manifest is of step 4"), HasSubstr("resumed      after step 2")));
}

TEST_F(Resume, AFileInThePlaceOfTheFolderIsRefused) {
  const Result refused = run(training(
      2, data.path(), fmt::format("--checkpoint.dir={}/text_train.bin --train.steps=2", data.path().string())));
  EXPECT_EQ(refused.exit_code, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("is not a folder"));
}

TEST_F(Resume, APathThatIsNoCheckpointIsRefused) {
  const Result nowhere = run(training(2, data.path(), "--checkpoint.resume=/nowhere"));
  EXPECT_EQ(nowhere.exit_code, 2) << nowhere.output;
  EXPECT_THAT(nowhere.output, HasSubstr("checkpoint.resume = /nowhere"));
  const Result empty = run(training(2, data.path(), "--checkpoint.resume=" + data.path().string()));
  EXPECT_EQ(empty.exit_code, 5) << empty.output;
  EXPECT_THAT(empty.output, HasSubstr("manifest.json is not whole"));
}

/// A file system of 8 MiB; gone at the end.
class SmallDisk {
 public:
  explicit SmallDisk(fs::path path) : path_(std::move(path)) {
    fs::create_directory(path_);
    mounted_ = run(fmt::format("mount -t tmpfs -o size=8m none {}", path_.string())).exit_code == 0;
  }
  ~SmallDisk() {
    if (mounted_) run(fmt::format("umount {}", path_.string()));
  }
  bool mounted() const { return mounted_; }

 private:
  fs::path path_;
  bool mounted_ = false;
};

TEST_F(Resume, AFullDiskEndsAllRanksAndLeavesTheEarlierCheckpoint) {
  const fs::path disk_path = data.path() / "disk";
  const SmallDisk disk(disk_path);
  if (!disk.mounted())
    GTEST_SKIP() << "not allowed to mount a small file system; a limit of file sizes stands for it "
                    "in unit_train";
  const std::string arguments = fmt::format("--checkpoint.dir={}/saved --checkpoint.freq=1", disk_path.string());
  ASSERT_EQ(run(training(2, data.path(), arguments)).exit_code, 0);
  std::ofstream(disk_path / "filler") << std::string(8 << 20, 'x');
  const Result full = run(training(2, data.path(), arguments + " --train.steps=3 --checkpoint.resume=auto"));
  EXPECT_EQ(full.exit_code, 1) << full.output;
  EXPECT_THAT(full.output, AllOf(HasSubstr("checkpoint of step 2"), HasSubstr("No space left on device")));
  fs::remove(disk_path / "filler");
  EXPECT_FALSE(fs::exists(disk_path / "saved/.tmp-step-00000002"));
  const Result again = run(training(2, data.path(), arguments + " --train.steps=3 --checkpoint.resume=auto"));
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("resumed      after step 1"));
}

}  // namespace
}  // namespace foreshard::faults
