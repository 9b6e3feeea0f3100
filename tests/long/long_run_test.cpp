// Two thousand steps on four ranks: memory stays, replicas stay equal, and the loss comes down to what is left to
// guess.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "base/process_memory.hpp"
#include "parity/local_run.hpp"
#include "train/replica_check.hpp"

namespace foreshard::parity {
namespace {

constexpr std::int64_t steps = 2000, seq = 8, rows = 16, vocab = 16;
const model::GptConfig small_model{.layers = 1, .width = 16, .heads = 2, .vocab_size = vocab, .max_seq_len = seq};

/// A Markov chain: after token t comes one of 5t, 5t + 1, 5t + 2, 5t + 3 (mod 16), each as likely. No model predicts it
/// with a mean loss below ln 4, the chain's entropy rate, and one that knows the chain has exactly that at each token.
constexpr int choices = 4;
train::Batch chain(std::int64_t step) {
  train::Batch batch;
  std::mt19937 random(static_cast<unsigned>(step));
  for (std::int64_t row = 0; row < rows; ++row) {
    auto token = static_cast<std::int32_t>(random() % vocab);
    for (std::int64_t i = 0; i < seq; ++i) {
      batch.tokens.push_back(token);
      token = static_cast<std::int32_t>((5 * token + static_cast<std::int32_t>(random() % choices)) % vocab);
      batch.targets.push_back(token);
    }
  }
  return batch;
}

struct Memory {
  std::int64_t heap_bytes = 0, resident_bytes = 0;
};

Memory memory_now() { return {static_cast<std::int64_t>(mallinfo2().uordblks), resident_bytes()}; }

/// What rank 0 sees every hundred steps.
struct Seen {
  std::vector<Memory> memory;
  std::vector<std::string> faults;
};

RunSetup setup_of(Seen& seen) {
  RunSetup setup{.settings = settings_of(small_model, seq, rows, {2, 1, 2}), .dtype = DType::f32, .reference = false};
  setup.learning_rates = std::vector<double>(steps, 3e-3);
  setup.batch = chain;
  setup.after_step = [&seen](const StepEnd& end) {
    if (end.step % 100 != 0) return;
    const std::string fault = train::replica_fault(end.communicator, end.rank);
    if (end.communicator.rank() != 0) return;
    seen.faults.push_back(fault);
    seen.memory.push_back(memory_now());
  };
  return setup;
}

/// What the second half of the samples has more than the first, both at their smallest: what is held for a moment does
/// not count, what is never given back does. The first sample is warm-up.
std::int64_t growth(const std::vector<Memory>& samples, std::int64_t Memory::*what) {
  const auto begin = samples.begin() + 1, middle = begin + std::ssize(samples) / 2;
  const auto smallest = [&](auto from, auto to) { return (*std::ranges::min_element(from, to, {}, what)).*what; };
  return smallest(middle, samples.end()) - smallest(begin, middle);
}

TEST(LongRun, KeepsItsMemoryAndItsReplicasAndLearnsAllThereIs) {
  Seen seen;
  const Outcome outcome = run(setup_of(seen));
  EXPECT_EQ(seen.faults, std::vector<std::string>(steps / 100));
  EXPECT_LE(growth(seen.memory, &Memory::heap_bytes), 64 << 10);
  EXPECT_LE(growth(seen.memory, &Memory::resident_bytes), 1 << 20);
  const double entropy = std::log(choices);
  const double last = std::accumulate(outcome.losses.end() - 200, outcome.losses.end(), 0.0) / 200;
  EXPECT_GT(outcome.losses.front(), 2 * entropy - 0.5) << "nothing to learn: it begins at ln 16";
  EXPECT_GT(last, entropy - 0.01);
  EXPECT_LT(last, entropy + 0.05);
}

}  // namespace
}  // namespace foreshard::parity
