#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "engine/lane_thread.hpp"

namespace foreshard::engine {
namespace {

using plan::Lane;

TEST(Progress, WhatHasEndedIsNotWaitedFor) {
  Progress progress;
  progress.wait_for({Lane::compute, 0}, Progress::issuer);
  progress.advance(Lane::compute);
  progress.wait_for({Lane::compute, 1}, Progress::issuer);
}

// Threads wait for numbers of their own, while the lane goes on without looking after them: one wake-up that is lost is
// a hang. Waits of 1 to 3 ops, so that registering meets the end of the op at every moment.
TEST(Progress, NoWakeUpIsLost) {
  constexpr std::uint64_t ops = 200'000;
  Progress progress;
  std::vector<std::thread> waiters;
  for (std::size_t waiter = 1; waiter <= Progress::issuer; ++waiter) {
    waiters.emplace_back([&progress, waiter] {
      std::minstd_rand random(static_cast<unsigned>(waiter));
      for (std::uint64_t sequence = 0; sequence < ops;) {
        sequence = std::min(std::uint64_t{ops}, sequence + 1 + random() % 3);
        progress.wait_for({Lane::compute, sequence}, waiter);
      }
    });
  }
  for (std::uint64_t i = 0; i < ops; ++i) {
    progress.advance(Lane::compute);
    progress.wake(Lane::compute);
  }
  for (std::thread& waiter : waiters) waiter.join();
}

// Two lanes that wait for each other in turn, as gathers and compute do: who waits has woken the other before.
TEST(Progress, LanesMayWaitForEachOther) {
  constexpr std::uint64_t ops = 20'000;
  Progress progress;
  std::thread gather([&progress] {
    for (std::uint64_t i = 0; i < ops; ++i) {
      progress.wait_for({Lane::compute, i}, static_cast<std::size_t>(Lane::gather));
      progress.advance(Lane::gather);
    }
    progress.wake(Lane::gather);
  });
  for (std::uint64_t i = 0; i < ops; ++i) {
    progress.wait_for({Lane::gather, i + 1}, static_cast<std::size_t>(Lane::compute));
    progress.advance(Lane::compute);
  }
  progress.wake(Lane::compute);
  gather.join();
}

// Who is told that more follows may leave others asleep until then, so none may be told so before the thread ends.
TEST(LaneThread, SaysWhetherAnotherOpFollows) {
  const plan::Op op{};
  std::atomic<bool> open = false;
  std::vector<bool> more;
  {
    LaneThread lane([&](const LaneThread::Task&, bool follows) {
      open.wait(false);
      more.push_back(follows);
    });
    for (int i = 0; i < 3; ++i) lane.push({.instance = {.op = &op}});
    open = true;
    open.notify_all();
  }
  ASSERT_EQ(more.size(), 3U);
  EXPECT_TRUE(more[1]);
  EXPECT_FALSE(more[2]);
}

}  // namespace
}  // namespace foreshard::engine
