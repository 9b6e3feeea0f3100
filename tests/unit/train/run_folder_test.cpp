#include "train/run_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.hpp"
#include "unit/base/temporary_folder.hpp"

namespace foreshard::train {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(RunFolder, IsNamedByTimeAndFoundAsLatest) {
  const TemporaryFolder dir;
  const RunFolder run(dir / "runs", "demo");
  EXPECT_THAT(run.path().filename().string(), MatchesRegex("[0-9]{8}-[0-9]{6}.*"));
  EXPECT_EQ(std::filesystem::canonical(dir / "runs/demo/latest"), std::filesystem::canonical(run.path()));
  EXPECT_EQ(run.run_id(), "demo/" + run.path().filename().string());
}

TEST(RunFolder, NeverTakesOneThatExists) {
  const TemporaryFolder dir;
  const RunFolder first(dir.path(), "demo"), second(dir.path(), "demo"), third(dir.path(), "demo");
  EXPECT_NE(first.path(), second.path());
  EXPECT_NE(second.path(), third.path());
  EXPECT_EQ(std::filesystem::canonical(dir / "demo/latest"), std::filesystem::canonical(third.path()));
}

TEST(RunFolder, CarriesTheJobsNumber) {
  setenv("SLURM_JOB_ID", "4711", 1);
  const TemporaryFolder dir;
  const RunFolder run(dir.path(), "demo");
  unsetenv("SLURM_JOB_ID");
  EXPECT_THAT(run.path().filename().string(), MatchesRegex("[0-9]{8}-[0-9]{6}-4711"));
}

TEST(RunFolder, RefusesWhatIsNoPlaceOrNoName) {
  const TemporaryFolder dir;
  std::ofstream(dir / "file").close();
  EXPECT_THROW(RunFolder(dir / "file", "demo"), InputError);
  EXPECT_THROW(RunFolder(dir.path(), "a/b"), InputError);
  EXPECT_THROW(RunFolder(dir.path(), ""), InputError);
  EXPECT_THROW(RunFolder(dir.path(), ".."), InputError);
}

TEST(RunFolder, KeepsTheConfiguration) {
  const TemporaryFolder dir;
  const RunFolder run(dir.path(), "demo");
  run.write_config("[train]\nsteps = 3\n");
  EXPECT_EQ(content_of(run.file("config.resolved.ini")), "[train]\nsteps = 3\n");
}

TEST(RunRecord, IsThereFromTheStartAndSaysHowItEnded) {
  const TemporaryFolder dir;
  RunRecord record(dir / "run.json", "demo/1", {"foreshard-train", "--train.steps=3"}, {"node1", "node2"});
  const auto begun = nlohmann::json::parse(content_of(dir / "run.json"));
  EXPECT_EQ(begun["exit_reason"], "running");
  EXPECT_TRUE(begun["end"].is_null());
  EXPECT_EQ(begun["hosts"].size(), 2u);
  EXPECT_EQ(begun["command_line"][1], "--train.steps=3");

  record["parameters"] = 124439808;
  record.finish("done", 0);
  const auto ended = nlohmann::json::parse(content_of(dir / "run.json"));
  EXPECT_EQ(ended["exit_reason"], "done");
  EXPECT_EQ(ended["exit_code"], 0);
  EXPECT_EQ(ended["parameters"], 124439808);
  EXPECT_THAT(ended["end"].get<std::string>(), MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"));
}

TEST(AllowedEnvironment, HoldsNothingBeyondTheList) {
  setenv("OMPI_MCA_btl", "self", 1);
  setenv("MY_SECRET_TOKEN", "hush", 1);
  const auto environment = allowed_environment();
  unsetenv("OMPI_MCA_btl");
  unsetenv("MY_SECRET_TOKEN");
  EXPECT_EQ(environment["OMPI_MCA_btl"], "self");
  EXPECT_FALSE(environment.contains("MY_SECRET_TOKEN"));
  EXPECT_FALSE(environment.contains("PATH"));
}

}  // namespace
}  // namespace foreshard::train
