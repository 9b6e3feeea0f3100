#include "comm/signal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/error.hpp"
#include "comm/mapping.hpp"

namespace foreshard::comm {

namespace {

using std::chrono::milliseconds;

struct Shared {
  Signal there, back;
  AbortFlag abort;
};
Shared& shared_in(const Mapping& mapping) { return *reinterpret_cast<Shared*>(mapping.data()); }

TEST(Signal, WakesASleeperAndShowsWhatWasWritten) {
  const Mapping mapping = Mapping::anonymous(4096);
  Shared& shared = shared_in(mapping);
  int written = 0;
  std::thread writer([&] {
    std::this_thread::sleep_for(milliseconds(3));
    written = 42;
    shared.there.advance();
  });
  shared.there.wait(1, 0, shared.abort, "wait");
  EXPECT_EQ(written, 42);
  writer.join();
}

TEST(Signal, NoWakeUpIsLost) {
  const Mapping mapping = Mapping::anonymous(4096);
  Shared& shared = shared_in(mapping);
  constexpr std::uint32_t turns = 20'000;
  std::thread other([&] {
    for (std::uint32_t turn = 1; turn <= turns; ++turn) {
      shared.there.wait(turn, static_cast<int>(turn % 3), shared.abort, "wait");
      shared.back.advance();
    }
  });
  for (std::uint32_t turn = 1; turn <= turns; ++turn) {
    shared.there.advance();
    shared.back.wait(turn, static_cast<int>(turn % 5), shared.abort, "wait");
  }
  other.join();
  EXPECT_EQ(shared.back.count(), turns);
}

TEST(Signal, CrossesProcesses) {
  const Mapping mapping = Mapping::shared(4096);
  Shared& shared = shared_in(mapping);
  const pid_t child = fork();
  if (child == 0) {
    shared.there.wait(1, 0, shared.abort, "wait");
    shared.back.advance();
    _exit(0);
  }
  std::this_thread::sleep_for(milliseconds(2));
  shared.there.advance();
  shared.back.wait(1, 0, shared.abort, "wait");
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Signal, CountsWrap) {
  const Mapping mapping = Mapping::anonymous(4096);
  Shared& shared = shared_in(mapping);
  shared.there.wait(0xffffffffU, 0, shared.abort,
                    "a count behind the signal");  // returns at once: -1 was reached before 0
  shared.there.advance();
  shared.there.wait(0xfffffff0U, 0, shared.abort, "a count behind the signal");
  EXPECT_EQ(shared.there.count(), 1U);
}

TEST(AbortFlag, EndsWaitsAndKeepsTheFirst) {
  const Mapping mapping = Mapping::anonymous(4096);
  Shared& shared = shared_in(mapping);
  shared.abort.check("nothing yet");
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(2));
    EXPECT_EQ(shared.abort.raise(7, 75), 75);
    EXPECT_EQ(shared.abort.raise(3, 1), 75);
  });
  try {
    shared.there.wait(1, 10, shared.abort, "gather of unit 3");
    ADD_FAILURE() << "the wait came back";
  } catch (const LibraryError& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(::testing::StartsWith("gather of unit 3:"),
                                               ::testing::HasSubstr("rank 7"), ::testing::HasSubstr("code 75")));
  }
  other.join();
}

}  // namespace

}  // namespace foreshard::comm
