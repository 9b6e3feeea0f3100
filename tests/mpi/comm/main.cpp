#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.hpp"
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

/// Rank 0 ends the run while the others wait for it in a collective, and they answer the error as any main does: with
/// an abort of their own. The job must still end with the first exit code.
void end_while_others_wait(const foreshard::comm::MpiOptions& options) {
  const auto ranks = foreshard::comm::make_mpi(options);
  std::byte* data = ranks->arena(8192).data();
  std::vector<int> members(static_cast<std::size_t>(ranks->size()));
  std::iota(members.begin(), members.end(), 0);
  const auto group = ranks->group(members);
  if (ranks->rank() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ranks->abort(75);
  }
  try {
    group->all_gather(data, data + 4096, 10, foreshard::DType::f32);
  } catch (const foreshard::LibraryError& error) {
    std::fprintf(stderr, "rank %d: %s\n", ranks->rank(), error.what());
  }
  ranks->abort(1);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  foreshard::comm::MpiSession session(argc, argv);
  if (argc > 1) end_while_others_wait({.shared_memory = std::string_view(argv[1]) == "--abort-shared"});
  const int rank = foreshard::comm::make_mpi()->rank();
  if (rank != 0) speak_only_of_failures(rank);
  return RUN_ALL_TESTS();
}
