// Some ranks make a collective call that the others do not make: all end, and it is said who is where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "base/error.hpp"
#include "engine/cpu_executor.hpp"
#include "engine/watchdog.hpp"
#include "faulty_communicator.hpp"
#include "train/checkpoint_save.hpp"
#include "unit/base/temporary_folder.hpp"

namespace foreshard::train {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

constexpr int size = 3, straying = 1;

plan::Settings small_settings() {
  return {.model = model::GptConfig{.layers = 2, .width = 8, .heads = 2, .vocab_size = 19, .max_seq_len = 5},
          .batch = {.batch = 1, .seq = 5},
          .mesh = {1, 1, size}};
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const InputError& stall) {
    EXPECT_EQ(stall.code(), ExitCode::stalled);
    return stall.what();
  }
}

/// After a step, all ranks but one save a checkpoint, as the trainer does, and that one goes on with the next step.
class DividedRanks {
 public:
  explicit DividedRanks(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void run(comm::Communicator& ranks) {
    const auto kernels = kernels::make_cpu();
    engine::PulseBoard board(ranks);
    TrainingRank rank(small_settings(), DType::f32, 1, ranks, {},
                      engine::on_cpu(*kernels, {.on_failure = [](std::exception_ptr) {}, .pulse = &board.own()}));
    const engine::Watchdog watchdog(board, [&](std::int64_t step) -> const plan::Plan& { return rank.plan_of(step); },
                                    {400ms, [&](const std::exception_ptr& stall) { end(ranks, stall); }});
    const Batch batch{{1, 2, 3, 4, 5}, {2, 3, 4, 5, 6}};
    try {
      rank.step(1, 1e-3, batch);
      ranks.rank() == straying ? void(rank.step(2, 1e-3, batch)) : save(ranks, rank, board.own());
      ADD_FAILURE() << "rank " << ranks.rank() << " went on";
    } catch (const LibraryError&) {  // the run was ended
    }
  }

  std::vector<std::string> said;

 private:
  void save(comm::Communicator& ranks, TrainingRank& rank, engine::Pulse& pulse) const {
    const engine::Pulse::LongPause pause(pulse);
    save_checkpoint(ranks, rank, {.step = 1}, {.folder = ranks.rank() == 0 ? folder_ : std::filesystem::path()});
  }

  void end(comm::Communicator& ranks, const std::exception_ptr& stall) {
    const std::lock_guard lock(mutex_);
    said.push_back(message_of(stall));
    ranks.abort(static_cast<int>(ExitCode::stalled));
  }

  std::filesystem::path folder_;
  std::mutex mutex_;
};

TEST(SubsetOfRanks, ThatSavesEndsTheRunAndIsNamed) {
  const TemporaryFolder folder;
  DividedRanks divided(folder / "checkpoints");
  on_ranks(size, [&](comm::Communicator& ranks) { divided.run(ranks); });
  ASSERT_FALSE(divided.said.empty());
  EXPECT_THAT(divided.said[0], AllOf(HasSubstr("rank 0 (process"), HasSubstr("rank 0: saving after step 1"),
                                     HasSubstr("rank 1: in step 2"), HasSubstr("rank 2: saving after step 1")));
  EXPECT_FALSE(std::filesystem::exists(folder / "checkpoints/step-00000001"));
}

}  // namespace
}  // namespace foreshard::train
