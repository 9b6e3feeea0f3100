#include "base/run_main.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/version.hpp"

namespace foreshard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  int code = 0, aborted_with = -1;
  std::string printed;
};

Outcome outcome_of(const std::function<int()>& body) {
  Outcome outcome;
  ::testing::internal::CaptureStderr();
  outcome.code = run_main("foreshard-test", body, [&](int code) { outcome.aborted_with = code; });
  outcome.printed = ::testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(RunMain, PassesTheCodeOfTheBodyOn) {
  const Outcome outcome = outcome_of([] { return 4; });
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.aborted_with, -1);
  EXPECT_EQ(outcome.printed, "");
}

TEST(RunMain, TurnsBadInputIntoOneBlockAndItsCode) {
  const Outcome outcome = outcome_of([]() -> int { throw InputError(ExitCode::bad_input, "x.bin: not a shard"); });
  EXPECT_EQ(outcome.code, 5);
  EXPECT_EQ(outcome.aborted_with, 5);
  EXPECT_THAT(outcome.printed, HasSubstr("foreshard-test: error: x.bin: not a shard\n  where:  rank 0 on "));
  EXPECT_THAT(outcome.printed, HasSubstr("remedy: "));
}

/// Of usage the first rank speaks for all and the launcher ends them, unless it does not come to that.
TEST(RunMain, ALaterRankLeavesTheFirstTimeToSayWhatAllSeeAlike) {
  using std::chrono::steady_clock;
  setenv("OMPI_COMM_WORLD_RANK", "3", 1);
  const auto began = steady_clock::now();
  const Outcome usage = outcome_of([]() -> int { throw InputError(ExitCode::usage, "no device here"); });
  const auto waited = steady_clock::now() - began;
  const Outcome input = outcome_of([]() -> int { throw InputError(ExitCode::bad_input, "bad"); });
  unsetenv("OMPI_COMM_WORLD_RANK");
  EXPECT_GE(waited, std::chrono::seconds(2));
  EXPECT_EQ(usage.aborted_with, 2);
  EXPECT_THAT(usage.printed, HasSubstr("no device here\n  where:  rank 3 on "));
  EXPECT_THAT(input.printed, HasSubstr("rank 3 on"));
}

TEST(RunMain, WhatCouldNotBePrintedIsAFailure) {
  const auto print_to_a_full_disk = [] {
    const bool opened = std::freopen("/dev/full", "w", stdout) != nullptr;
    std::exit(run_main("foreshard-test", [&] { return std::puts("text") < 0 || !opened ? 9 : 0; }));
  };
  EXPECT_EXIT(print_to_a_full_disk(), ::testing::ExitedWithCode(1), "could not be written");
}

TEST(RunMain, WhatTheSystemRefusesIsNoFaultToReport) {
  const Outcome outcome =
      outcome_of([]() -> int { throw std::system_error(ENOSPC, std::generic_category(), "stdout"); });
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.printed, HasSubstr("the system refused: stdout: No space left on device"));
  EXPECT_THAT(outcome.printed, Not(HasSubstr("please report")));
}

TEST(RunMain, EverythingElseIsCodeOne) {
  EXPECT_EQ(outcome_of([]() -> int { throw LibraryError("MPI_Send"); }).code, 1);
  EXPECT_EQ(outcome_of([]() -> int { throw ContractError("x"); }).code, 1);
  EXPECT_EQ(outcome_of([]() -> int { throw std::runtime_error("x"); }).aborted_with, 1);
  EXPECT_EQ(outcome_of([]() -> int { throw 3; }).code, 1);
}

TEST(Log, InfoIsOfRankZeroAndWarningsNameTheirRank) {
  const auto printed = [](int rank, LogLevel level) {
    set_log_rank(rank);
    ::testing::internal::CaptureStderr();
    log_line(level, "hello");
    const std::string text = ::testing::internal::GetCapturedStderr();
    set_log_rank(0);
    return text;
  };
  EXPECT_EQ(printed(0, LogLevel::info), "hello\n");
  EXPECT_EQ(printed(2, LogLevel::info), "");
  EXPECT_EQ(printed(0, LogLevel::warn), "WARN hello\n");
  EXPECT_EQ(printed(2, LogLevel::error), "[rank 2 " + host_name() + "] ERROR hello\n");
}

TEST(Version, FirstLineStandsAlone) {
  EXPECT_EQ(version_text().substr(0, version_text().find('\n')), "foreshard " + std::string(version()));
}

}  // namespace
}  // namespace foreshard
