// What the plan lets overlap across segments does so in steps that are replayed.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "rehearsed.hpp"

namespace foreshard::parity {
namespace {

using plan::Lane;
using plan::Op;
using plan::Segment;
using plan::Wait;

const model::GptConfig small{.layers = 2, .width = 16, .heads = 2, .vocab_size = 37, .max_seq_len = 8};

/// The gathers of a step up to the first of its second micro-batch, which waits for nothing of its own segment.
int gathers_before_end_of_first(const plan::Plan& plan) {
  const auto gathers = [&](Segment::Name name) {
    std::vector<const Op*> found;
    for (const Op& op : plan.ops_of(plan.segment(name)))
      if (op.lane == Lane::gather) found.push_back(&op);
    return found;
  };
  const Op* next = gathers(Segment::Name::last).at(0);
  EXPECT_TRUE(std::ranges::all_of(plan.waits_of(*next), [](const Wait& wait) { return wait.on != Wait::On::op; }));
  return static_cast<int>(gathers(Segment::Name::first).size()) + 1;
}

/// Ends the first device's first micro-batch only when that many gathers of a step have begun there, or patience ends.
class HeldBack {
 public:
  HeldBack(int gathers, std::chrono::milliseconds patience) : gathers_(gathers), patience_(patience) {
    rehearsal::watch_work([this](int device, const std::string& work) {
      if (device == 0) see(work);
    });
  }
  void begin_step() {
    seen_ = 0;
    ends_ = 0;
  }
  int missed() const { return missed_; }

 private:
  void see(const std::string& work) {
    if (work.starts_with("all-gather")) ++seen_;
    if (work.find("advance_micro_batch") == std::string::npos || ends_++ > 0) return;
    const auto until = std::chrono::steady_clock::now() + patience_;
    while (seen_ < gathers_ && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (seen_ < gathers_) ++missed_;
  }

  const int gathers_;
  const std::chrono::milliseconds patience_;
  std::atomic<int> seen_ = 0, ends_ = 0, missed_ = 0;
};

/// How often the gather had to wait for the end of the micro-batch before it, in three steps: one that captures, two
/// that replay.
int missed_overlaps(std::int64_t graph_ops, std::chrono::milliseconds patience) {
  RunSetup setup{.settings = settings_of(small, 8, 8, full_shard(2), 2), .dtype = DType::f32, .reference = false};
  setup.learning_rates = {1e-2, 1e-2, 1e-2};
  setup.batch = [](std::int64_t step) { return formula_batch(8, 8, small.vocab_size, step, 5); };
  std::optional<HeldBack> held;
  setup.before_step = [&](train::TrainingRank& rank, int index, std::int64_t step) {
    if (index != 0) return;
    if (step == 1) held.emplace(gathers_before_end_of_first(rank.plan()), patience);
    held->begin_step();
  };
  run_rehearsed(setup, {.graphs = true, .graph_ops = graph_ops});
  rehearsal::watch_work({});
  return held->missed();
}

TEST(Overlap, GathersOfTheNextMicroBatchRunWhileOneEnds) {
  EXPECT_EQ(missed_overlaps(1 << 16, std::chrono::seconds(20)), 0);
}

/// So the test can fail.
TEST(Overlap, DoesNotReachAcrossGraphs) { EXPECT_EQ(missed_overlaps(1, std::chrono::milliseconds(200)), 3); }

}  // namespace
}  // namespace foreshard::parity
