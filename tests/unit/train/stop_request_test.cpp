#include "train/stop_request.hpp"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <thread>
#include <vector>

namespace foreshard::train {
namespace {

TEST(StopAgreement, StopsAllRanksAfterTheSameStep) {
  constexpr int world = 3;
  const auto communicators = comm::make_local(world);
  std::array<std::int64_t, world> stopped{};
  constexpr std::int64_t asked_after = 5;
  const auto train = [&](int rank) {
    std::atomic<bool> requested{false};
    StopAgreement stop(*communicators[static_cast<std::size_t>(rank)], requested);
    for (std::int64_t step = 1; stopped[static_cast<std::size_t>(rank)] == 0; ++step) {
      if (rank == 1 && step == asked_after) requested = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1 + rank));  // each at a speed of its own
      if (stop.after_step()) stopped[static_cast<std::size_t>(rank)] = step;
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) threads.emplace_back(train, rank);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(stopped[0], asked_after);
  EXPECT_EQ(stopped[1], stopped[0]);
  EXPECT_EQ(stopped[2], stopped[0]);
}

TEST(StopSignal, OnlyRaisesTheFlagHoweverOften) {
  const std::atomic<bool>& requested = catch_stop_signal();
  EXPECT_FALSE(requested);
  raise(SIGUSR1);
  EXPECT_TRUE(requested);
  raise(SIGUSR1);
  EXPECT_TRUE(requested);
}

}  // namespace
}  // namespace foreshard::train
