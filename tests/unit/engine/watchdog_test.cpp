// The watchdog of ranks that are threads: an op that hangs ends all of them, an op that is slow does not.
#include "engine/watchdog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "base/error.hpp"
#include "engine/cpu_executor.hpp"
#include "exec/run_plan.hpp"
#include "unit/plan/tiny.hpp"

namespace foreshard::engine {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

plan::Plan forward_plan(int ranks) { return plan::build_evaluation_plan(plan::tiny_graph(), {.inner = ranks}, {}); }

/// Steps of a tiny plan on ranks that are threads, each with a watchdog.
class WatchedRanks {
 public:
  WatchedRanks(int size, std::chrono::duration<double> deadline)
      : plan_(forward_plan(size)), deadline_(deadline), communicators_(comm::make_local(size)) {}

  /// `before_op` is called by each lane. Returns what the watchdogs said, by rank.
  std::vector<std::string> run(int steps, const std::function<void(int rank, const plan::Op&)>& before_op) {
    std::vector<std::string> said(communicators_.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < said.size(); ++rank)
      threads.emplace_back([&, rank] { run_rank(*communicators_[rank], steps, before_op, said[rank]); });
    for (std::thread& thread : threads) thread.join();
    return said;
  }

  bool ended() const { return ended_; }

 private:
  void run_rank(comm::Communicator& communicator, int steps,
                const std::function<void(int rank, const plan::Op&)>& before_op, std::string& said) {
    PulseBoard board(communicator);
    const auto kernels = kernels::make_cpu();
    CpuExecutor executor({plan_.mesh, communicator, plan_.arena_bytes}, *kernels,
                         {.on_failure = [](std::exception_ptr) {},
                          .before_op = [&](const plan::Op& op) { before_op(communicator.rank(), op); },
                          .pulse = &board.own()});
    const Watchdog watchdog(board, [&](std::int64_t) -> const plan::Plan& { return plan_; },
                            {deadline_, [&](const std::exception_ptr& stall) {
                               said = text_of(stall);
                               ended_ = true;
                               communicator.abort(static_cast<int>(ExitCode::stalled));
                             }});
    try {
      for (int step = 1; step <= steps; ++step) run_step(executor, step);
    } catch (const LibraryError&) {  // the run was ended by a watchdog
    }
  }

  void run_step(CpuExecutor& executor, int step) {
    const std::vector<std::int32_t> tokens(16, 3);
    const exec::StepContext context{.step = step, .tokens = tokens, .targets = tokens};
    executor.begin_step(plan_, context, nullptr);
    exec::run_plan(plan_, executor);
  }

  static std::string text_of(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const InputError& stall) {
      EXPECT_EQ(stall.code(), ExitCode::stalled);
      return stall.what();
    }
  }

  plan::Plan plan_;
  std::chrono::duration<double> deadline_;
  std::vector<std::unique_ptr<comm::Communicator>> communicators_;
  std::atomic<bool> ended_{false};
};

class HangingRank : public testing::TestWithParam<int> {};

TEST_P(HangingRank, IsNamedWithItsOpAndAllEnd) {
  WatchedRanks ranks(3, 1s);
  const auto said = ranks.run(3, [&](int rank, const plan::Op& op) {
    if (rank != GetParam() || op.kind != plan::OpKind::gelu) return;
    while (!ranks.ended()) std::this_thread::sleep_for(1ms);
  });
  EXPECT_THAT(said[0], AllOf(HasSubstr("rank " + std::to_string(GetParam()) + " (process"), HasSubstr("is behind"),
                             HasSubstr("compute is in gelu u0, micro-batch 0")));
}

INSTANTIATE_TEST_SUITE_P(Each, HangingRank, testing::Values(0, 1, 2));

TEST(Watchdog, WaitsLongerInALongPause) {
  const plan::Plan plan = forward_plan(1);
  const auto communicator = std::move(comm::make_local(1).front());
  PulseBoard board(*communicator);
  std::atomic<int> stalls{0};
  const Watchdog watchdog(board, [&](std::int64_t) -> const plan::Plan& { return plan; },
                          {1s, [&](const std::exception_ptr&) { ++stalls; }});
  {
    const Pulse::LongPause pause(board.own());
    std::this_thread::sleep_for(2s);
    EXPECT_EQ(stalls, 0);
  }
  for (int look = 0; look < 1000 && stalls == 0; ++look) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(stalls, 1);
}

TEST(Watchdog, LetsSlowOpsBe) {
  WatchedRanks ranks(2, 10s);
  const auto said = ranks.run(2, [](int rank, const plan::Op& op) {
    if (rank == 1 && op.kind == plan::OpKind::gelu) std::this_thread::sleep_for(100ms);
  });
  EXPECT_THAT(said, testing::Each(""));
  EXPECT_FALSE(ranks.ended());
}

TEST(Watchdog, LeavesItsPulseAsThePlanEnded) {
  const plan::Plan plan = forward_plan(1);
  const auto communicator = std::move(comm::make_local(1).front());
  PulseBoard board(*communicator);
  const auto kernels = kernels::make_cpu();
  CpuExecutor executor({plan.mesh, *communicator, plan.arena_bytes}, *kernels, {.pulse = &board.own()});
  const std::vector<std::int32_t> tokens(16, 3);
  const exec::StepContext context{.step = 5, .tokens = tokens, .targets = tokens};
  executor.begin_step(plan, context, nullptr);
  EXPECT_TRUE(board.look().at(0).running);
  exec::run_plan(plan, executor);
  const Sighting seen = board.look().at(0);
  EXPECT_EQ(seen.ops_ended(), plan.ops.size());
  EXPECT_EQ(seen.step, 5);
  EXPECT_FALSE(seen.running);
}

}  // namespace
}  // namespace foreshard::engine
