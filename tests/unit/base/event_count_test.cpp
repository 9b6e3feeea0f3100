#include "base/event_count.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace foreshard {
namespace {

TEST(EventCount, WhatIsSoIsNotWaitedFor) {
  EventCount events;
  events.sleep_until([] { return true; });
}

// Sleepers want numbers of their own while the count goes on: one wake-up that is lost is a hang.
TEST(EventCount, NoWakeUpIsLost) {
  constexpr std::uint64_t last = 100'000;
  EventCount events;
  std::atomic<std::uint64_t> count{0};
  std::vector<std::thread> sleepers;
  for (std::uint64_t step = 1; step <= 3; ++step)
    sleepers.emplace_back([&, step] {
      for (std::uint64_t wanted = step; wanted <= last; wanted += step)
        events.sleep_until([&] { return count.load() >= wanted; });
    });
  for (std::uint64_t i = 0; i < last; ++i) {
    count.fetch_add(1);
    events.wake();
  }
  for (std::thread& sleeper : sleepers) sleeper.join();
}

// A single-place mailbox: each side sleeps until the other has been.
TEST(EventCount, TwoMayWaitForEachOther) {
  constexpr int letters = 20'000;
  EventCount full, empty;
  std::atomic<int> box{0};
  std::int64_t sum = 0;
  std::thread reader([&] {
    for (int i = 0; i < letters; ++i) {
      full.sleep_until([&] { return box.load() != 0; });
      sum += box.exchange(0);
      empty.wake();
    }
  });
  for (int i = 1; i <= letters; ++i) {
    empty.sleep_until([&] { return box.load() == 0; });
    box.store(i);
    full.wake();
  }
  reader.join();
  EXPECT_EQ(sum, std::int64_t{letters} * (letters + 1) / 2);
}

}  // namespace
}  // namespace foreshard
