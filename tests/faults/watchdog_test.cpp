// A rank that is stopped, killed, or late: all end and say who it was, or nobody notices.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <thread>

#include "command.hpp"

namespace foreshard::faults {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class WatchedRun : public testing::Test {
 protected:
  void start(int ranks, const std::string& arguments) {
    const std::string command = training(ranks, data.path(), "--trace.enable=false " + arguments);
    running = std::async(std::launch::async, [command] { return run(command); });
  }

  int process(int rank) {
    const int found = process_of(data.path(), rank);
    EXPECT_GT(found, 0) << "rank " << rank << " is not there";
    return found;
  }

  static void send(int process, int signal) {
    ASSERT_GT(process, 0);
    EXPECT_EQ(kill(process, signal), 0);
  }

  /// Whether the process is gone soon: the launcher does not wait for those that it kills.
  static bool goes(int process) {
    for (int look = 0; look < 1000 && kill(process, 0) == 0; ++look) std::this_thread::sleep_for(10ms);
    return kill(process, 0) != 0 && errno == ESRCH;
  }

  DataFolder data;
  std::future<Result> running;
};

constexpr const char* endless = "--train.steps=1000000 --metrics.log_freq=1000000 --engine.watchdog_s=4 ";

class StoppedRank : public WatchedRun, public testing::WithParamInterface<std::tuple<int, int>> {};

TEST_P(StoppedRank, IsNamedAndAllEnd) {
  const auto [ranks, stopped] = GetParam();
  start(ranks, endless);
  const int process = this->process(stopped);
  send(process, SIGSTOP);
  const Result result = running.get();
  EXPECT_EQ(result.exit_code, 6) << result.output;
  EXPECT_THAT(result.output, HasSubstr("rank " + std::to_string(stopped) + " (process " + std::to_string(process) +
                                       ") is stopped or dead"));
  EXPECT_TRUE(goes(process)) << "the stopped process was left behind";
}

/// Before MPI has started on all ranks, no rank sees another.
TEST_F(WatchedRun, EndsWhenARankIsStoppedBeforeMpiStarts) {
  const std::string late =
      fmt::format("{} 1 {} : -n 1 sh -c 'kill -STOP $$; exec {}'", FORESHARD_MPIRUN,
                  program(data.path(), "--engine.watchdog_s=2"), program(data.path(), "--engine.watchdog_s=2"));
  const Result result = run(late);
  EXPECT_EQ(result.exit_code, 6) << result.output;
  EXPECT_THAT(result.output, HasSubstr("the start of MPI did not end within 2 s"));
}

INSTANTIATE_TEST_SUITE_P(Ranks, StoppedRank, testing::Values(std::tuple(2, 0), std::tuple(2, 1), std::tuple(3, 2)));

TEST_F(WatchedRun, EndsAlsoWhereRanksShareNoMemory) {
  start(2, std::string(endless) + "--comm.backend=messages");
  send(process(1), SIGSTOP);
  const Result result = running.get();
  EXPECT_EQ(result.exit_code, 6) << result.output;
  EXPECT_THAT(result.output, HasSubstr("see what those of the other nodes say"));
}

TEST_F(WatchedRun, EndsWhenARankIsKilled) {
  start(2, endless);
  send(process(1), SIGKILL);
  const Result result = running.get();
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.exit_code, 124) << "the other rank hung";
}

/// Ends only when asked to, with exit code 75.
constexpr const char* patient = "--train.steps=1000000 --metrics.log_freq=1000000 --engine.watchdog_s=8 ";

TEST_F(WatchedRun, WaitsForALateRank) {
  start(2, patient);
  const int late = process(1);
  send(late, SIGSTOP);
  std::this_thread::sleep_for(1500ms);
  send(late, SIGCONT);
  send(late, SIGUSR1);
  const Result result = running.get();
  EXPECT_EQ(result.exit_code, 75) << result.output;
}

TEST_F(WatchedRun, DoesNotCountTheTimeInWhichTheWholeJobIsSuspended) {
  start(2, patient);
  const int processes[] = {process(0), process(1)};
  for (const int process : processes) send(process, SIGSTOP);
  std::this_thread::sleep_for(10s);
  for (const int process : processes) send(process, SIGCONT);
  send(processes[0], SIGUSR1);
  const Result result = running.get();
  EXPECT_EQ(result.exit_code, 75) << result.output;
}

}  // namespace
}  // namespace foreshard::faults
