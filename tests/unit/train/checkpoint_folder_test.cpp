#include "train/checkpoint_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "unit/base/temporary_folder.hpp"

namespace foreshard::train {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

fs::path make(const fs::path& folder, std::int64_t step) {
  fs::create_directories(folder / checkpoint_name(step));
  return folder / checkpoint_name(step);
}

TEST(CheckpointFolder, NamesSayTheStep) {
  EXPECT_EQ(checkpoint_name(100), "step-00000100");
  EXPECT_EQ(step_of("runs/step-00000100"), 100);
  EXPECT_EQ(step_of("step-123456789"), 123456789);
  for (const char* other : {"step-", "step-1x", ".tmp-step-00000100", "damaged-step-00000100", "latest"})
    EXPECT_EQ(step_of(other), std::nullopt) << other;
}

TEST(CheckpointFolder, ListsCompleteOnesNewestFirst) {
  const TemporaryFolder dir;
  EXPECT_THAT(checkpoints_in(dir / "none"), IsEmpty());
  const auto a = make(dir.path(), 20), b = make(dir.path(), 100000000), c = make(dir.path(), 3);
  begin_checkpoint(dir.path(), 200000000);
  EXPECT_THAT(checkpoints_in(dir.path()), ElementsAre(b, a, c));
}

TEST(CheckpointFolder, OfAllRunsTheNewestRunsComeFirst) {
  const TemporaryFolder runs;
  const auto old_far = make(runs / "20261129-101010/checkpoints", 900);
  const auto new_near = make(runs / "20261130-101010/checkpoints", 10);
  const auto new_far = make(runs / "20261130-101010/checkpoints", 20);
  fs::create_directory_symlink("20261129-101010", runs / "latest");
  EXPECT_THAT(checkpoints_of_runs(runs.path()), ElementsAre(new_far, new_near, old_far));
}

TEST(CheckpointFolder, OneThatIsBegunRemovesWhatWasLeftUnfinished) {
  const TemporaryFolder dir;
  std::ofstream(begin_checkpoint(dir.path(), 1) / "half") << "x";
  const fs::path next = begin_checkpoint(dir.path(), 2);
  EXPECT_TRUE(fs::is_empty(next));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 1);
  EXPECT_EQ(complete_checkpoint(next), dir / checkpoint_name(2));
  EXPECT_THAT(checkpoints_in(dir.path()), ElementsAre(dir / checkpoint_name(2)));
}

TEST(CheckpointFolder, KeepsTheNewest) {
  const TemporaryFolder dir;
  for (const std::int64_t step : {5, 10, 15, 20}) make(dir.path(), step);
  remove_old_checkpoints(dir.path(), 0);
  EXPECT_EQ(checkpoints_in(dir.path()).size(), 4u);
  remove_old_checkpoints(dir.path(), 3);
  EXPECT_EQ(*step_of(checkpoints_in(dir.path()).back()), 10);
  remove_old_checkpoints(dir.path(), 1);
  EXPECT_THAT(checkpoints_in(dir.path()), ElementsAre(dir / checkpoint_name(20)));
}

TEST(CheckpointFolder, SetsAsideWithoutLosingAny) {
  const TemporaryFolder dir;
  const fs::path first = set_aside(make(dir.path(), 5)), second = set_aside(make(dir.path(), 5));
  EXPECT_TRUE(fs::exists(first));
  EXPECT_TRUE(fs::exists(second));
  EXPECT_THAT(checkpoints_in(dir.path()), IsEmpty());
}

TEST(CheckpointFolder, OneThatCannotBeMadeSaysWhy) {
  const TemporaryFolder dir;
  std::ofstream(dir / "file") << "x";
  EXPECT_THROW(begin_checkpoint(dir / "file", 1), InputError);
}

}  // namespace
}  // namespace foreshard::train
