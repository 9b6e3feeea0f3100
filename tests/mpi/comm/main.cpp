#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "comm/mpi_communicator.hpp"

namespace {

/// Ranks other than 0 speak only when something fails.
class OnlyFailures : public testing::EmptyTestEventListener {
 public:
  explicit OnlyFailures(int rank) : rank_(rank) {}

 private:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_, result.file_name() != nullptr ? result.file_name() : "?",
                 result.line_number(), result.message());
  }
  int rank_;
};

void speak_only_of_failures(int rank) {
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new OnlyFailures(rank));
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  foreshard::comm::MpiSession session(argc, argv);
  const int rank = foreshard::comm::make_mpi()->rank();
  if (rank != 0) speak_only_of_failures(rank);
  return RUN_ALL_TESTS();
}
