// Whatever happens to a checkpoint's bytes is found, told by the file's name, and the one before is used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>

#include "base/error.hpp"
#include "checkpoint_run.hpp"
#include "train/checkpoint_folder.hpp"
#include "unit/base/temporary_folder.hpp"

namespace foreshard::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CheckpointDamage : public ::testing::Test {
 protected:
  CheckpointDamage() { write_tokens(folder_ / "tokens.bin"); }

  Job job(int world = 2) const {
    return {.mesh = {1, 1, world}, .steps = 2, .data = folder_ / "tokens.bin", .folder = folder_ / "checkpoints"};
  }

  /// Two steps, a checkpoint after each.
  JobOutcome save_two(int world = 2) const {
    Job two = job(world);
    two.save_after = {1, 2};
    return run(two);
  }

  fs::path checkpoint(std::int64_t step) const { return folder_ / "checkpoints" / checkpoint_name(step); }
  std::vector<fs::path> files_of(std::int64_t step) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(checkpoint(step))) files.push_back(entry.path());
    return files;
  }

  Job resuming(int world = 2) const {
    Job next = job(world);
    next.candidates = checkpoints_in(folder_ / "checkpoints");
    return next;
  }

  /// A run now begins with step 1's checkpoint, and says that `file` of step 2's is not whole.
  void expect_the_one_before(const JobOutcome& expected, const fs::path& file, int world = 2) {
    ::testing::internal::CaptureStderr();
    const JobOutcome outcome = run(resuming(world));
    const std::string told = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(outcome.resumed_step, 1) << file;
    EXPECT_THAT(outcome.refused, ElementsAre(checkpoint(2)));
    EXPECT_THAT(told, AllOf(HasSubstr("WARN"), HasSubstr(file.string() + " is not whole")));
    EXPECT_TRUE(outcome.state == expected.state) << file;
  }

  TemporaryFolder folder_;
};

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

std::string with_flipped_bit(std::string text, std::size_t byte, std::size_t bit) {
  text[byte] = static_cast<char>(static_cast<unsigned char>(text[byte]) ^ (1U << bit));
  return text;
}

TEST_F(CheckpointDamage, TheNewestWholeOneIsTaken) {
  const JobOutcome expected = save_two();
  const JobOutcome outcome = run(resuming());
  EXPECT_EQ(outcome.resumed_step, 2);
  EXPECT_TRUE(outcome.state == expected.state);
}

TEST_F(CheckpointDamage, AFlippedBitInAnyFileIsFound) {
  const JobOutcome expected = save_two();
  for (const fs::path& file : files_of(2)) {
    const std::string text = content_of(file);
    for (const std::size_t byte : {std::size_t{0}, std::size_t{9}, text.size() / 3, text.size() / 2, text.size() - 1}) {
      write_text(file, with_flipped_bit(text, byte, byte % 8));
      expect_the_one_before(expected, file);
    }
    write_text(file, text);
  }
}

TEST_F(CheckpointDamage, AMissingShortOrLongFileIsFound) {
  const JobOutcome expected = save_two();
  for (const fs::path& file : files_of(2)) {
    const std::string text = content_of(file);
    write_text(file, text.substr(0, text.size() - 1));
    expect_the_one_before(expected, file);
    write_text(file, text + "x");
    expect_the_one_before(expected, file);
    write_text(file, "");
    expect_the_one_before(expected, file);
    fs::remove(file);
    expect_the_one_before(expected, file);
    write_text(file, text);
  }
}

TEST_F(CheckpointDamage, AFlippedBitInAnyByteOfTheManifestIsFound) {
  save_two(1);
  const std::string text = content_of(checkpoint(2) / manifest_name);
  EXPECT_EQ(text_of(parse_manifest(text, "m")), text);
  for (std::size_t byte = 0; byte < text.size(); ++byte)
    EXPECT_THROW(parse_manifest(with_flipped_bit(text, byte, byte % 7), "m"), InputError) << byte;
}

TEST_F(CheckpointDamage, ADeepManifestIsRefusedRatherThanFollowed) {
  const std::string deep(1'000'000, '[');
  EXPECT_THROW(parse_manifest("{\"body\":" + deep + std::string(deep.size(), ']') + "}", "m"), InputError);
}

TEST_F(CheckpointDamage, AFlippedBitInAnyByteOfAShardIsFound) {
  save_two(1);
  const fs::path file = checkpoint(2) / state_file_name(0);
  const std::string text = content_of(file);
  const FileEntry entry{file.filename().string(), static_cast<std::int64_t>(text.size()),
                        sha256(std::as_bytes(std::span(text)))};
  std::vector<std::byte> bytes(text.size());
  const auto read = [&] {
    VerifiedFile verified(file.parent_path(), entry);
    verified.read(bytes);
    verified.close();
  };
  EXPECT_NO_THROW(read());
  for (std::size_t byte = 0; byte < text.size(); byte += 101) {
    write_text(file, with_flipped_bit(text, byte, byte % 8));
    EXPECT_THROW(read(), InputError) << byte;
  }
}

TEST_F(CheckpointDamage, WithNothingWholeLeftNoRunBeginsAnew) {
  save_two(1);
  for (const std::int64_t step : {1, 2}) fs::resize_file(checkpoint(step) / state_file_name(0), 100);
  ::testing::internal::CaptureStderr();
  try {
    run(resuming(1));
    FAIL() << "it began";
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("2 were refused"), HasSubstr(checkpoint(2).string())));
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("it has 100 bytes"));
}

TEST_F(CheckpointDamage, AWriteThatFailsLeavesTheEarlierOneAndNothingElse) {
  Job first = job(1);
  first.save_after = {1};
  run(first);
  Job second = resuming(1);
  second.save_after = {2};
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit little{.rlim_cur = 5000, .rlim_max = before.rlim_max};  // as a disk with little room
  setrlimit(RLIMIT_FSIZE, &little);
  std::string message = "nothing failed";
  try {
    run(second);
  } catch (const InputError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_THAT(message,
              AllOf(HasSubstr("checkpoint of step 2"), HasSubstr("File too large"), HasSubstr("checkpoint.dir")));
  EXPECT_THAT(files_of(1).size(), 2u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "checkpoints"), fs::directory_iterator()), 1);
}

/// Points of a save at which `rank` may be killed.
std::vector<std::string> write_points(Job job, int rank) {
  std::vector<std::string> points;
  job.at_point = [&](int at, std::string_view point) {
    if (at == rank) points.emplace_back(point);
  };
  run(job);
  return points;
}

/// Runs the job in a process of its own that is killed when `rank` comes to `point`.
void run_and_kill(Job job, int rank, const std::string& point) {
  const pid_t child = fork();
  if (child == 0) {
    job.at_point = [&](int at, std::string_view here) {
      if (at == rank && here == point) raise(SIGKILL);
    };
    run(job);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << point;
}

class KilledWhileSaving : public CheckpointDamage, public ::testing::WithParamInterface<int> {};

TEST_P(KilledWhileSaving, LeavesTheNewestCompleteOne) {
  const int rank = GetParam();
  Job first = job();
  first.steps = 1;
  first.save_after = {1};
  run(first);
  fs::copy(folder_ / "checkpoints", folder_ / "kept", fs::copy_options::recursive);
  Job second = resuming();
  second.save_after = {2};
  second.keep = 1;
  const std::vector<std::string> points = write_points(second, rank);
  ASSERT_GE(points.size(), rank == 0 ? 17u : 11u);
  const JobOutcome expected = run(job());
  bool renamed = false;
  for (const std::string& point : points) {
    fs::remove_all(folder_ / "checkpoints");
    fs::copy(folder_ / "kept", folder_ / "checkpoints", fs::copy_options::recursive);
    run_and_kill(second, rank, point);
    renamed |= point == "renamed";
    const JobOutcome outcome = run(resuming());
    EXPECT_EQ(outcome.resumed_step, renamed ? 2 : 1) << "killed at: " << point;
    EXPECT_TRUE(outcome.refused.empty()) << "killed at: " << point;
    EXPECT_TRUE(outcome.state == expected.state) << "killed at: " << point;
    Job third = resuming();
    third.steps = 3;
    third.save_after = {3};
    third.keep = 1;
    run(third);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "checkpoints"), fs::directory_iterator()), 1)
        << "what was unfinished is gone; killed at: " << point;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, KilledWhileSaving, ::testing::Values(0, 1));

}  // namespace
}  // namespace foreshard::train
