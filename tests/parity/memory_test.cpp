// What a run holds while it runs: gathered parameters within their limit however slow compute is, and nothing that
// grows with the steps.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "expect.hpp"

namespace foreshard::parity {
namespace {

using namespace std::chrono_literals;

const model::GptConfig deep_model{.layers = 6, .width = 12, .heads = 3, .vocab_size = 19, .max_seq_len = 6};
constexpr std::int64_t seq = 5, rows = 8;

RunSetup setup_of(const plan::Mesh& mesh, std::size_t steps) {
  RunSetup setup{.settings = settings_of(deep_model, seq, rows, mesh), .dtype = DType::f32, .reference = false};
  setup.learning_rates = std::vector<double>(steps, 1e-2);
  setup.batch = [](std::int64_t step) { return formula_batch(rows, seq, deep_model.vocab_size, step); };
  return setup;
}

/// From the start of the first op that touches a buffer to the end of the last.
struct Life {
  std::int64_t begin_ns = INT64_MAX, end_ns = 0, size_bytes = 0;
};

/// Of all gathered units but the root, which is kept.
std::vector<Life> lives_of_gathered(const plan::Plan& plan, const std::vector<trace::Event>& events) {
  std::map<std::uint32_t, Life> lives;
  for (const trace::Event& event : events) {
    const plan::Op& op = plan.ops[event.op];
    for (const auto operands : {plan.inputs(op), plan.outputs(op)})
      for (const plan::Operand& operand : operands) {
        if (!operand.present()) continue;
        const plan::Buffer& buffer = plan.buffers[operand.buffer.value];
        if (buffer.memory != plan::MemoryClass::gathered || buffer.unit == model::root_unit) continue;
        Life& life = lives[operand.buffer.value];
        life = {std::min(life.begin_ns, event.start_ns), std::max(life.end_ns, event.start_ns + event.duration_ns),
                buffer.size_bytes};
      }
  }
  std::vector<Life> all;
  for (const auto& [buffer, life] : lives) all.push_back(life);
  return all;
}

/// Bytes that were alive at once, at most: at some birth.
std::int64_t peak_bytes(const std::vector<Life>& lives) {
  std::int64_t peak = 0;
  for (const Life& at : lives) {
    std::int64_t alive = 0;
    for (const Life& life : lives)
      if (life.begin_ns <= at.begin_ns && at.begin_ns < life.end_ns) alive += life.size_bytes;
    peak = std::max(peak, alive);
  }
  return peak;
}

/// Holds the first block's compute on each of two ranks until `expected` units are being gathered, and a while longer
/// for those that should not be.
class SlowCompute {
 public:
  explicit SlowCompute(int expected) : expected_(expected) {}
  void operator()(int rank, const plan::Op& op) {
    std::atomic<int>& begun = begun_[static_cast<std::size_t>(rank)];
    if (op.kind == plan::OpKind::all_gather && op.unit != model::root_unit) ++begun;
    if (op.lane != plan::Lane::compute || op.unit == model::root_unit) return;
    if (held_[static_cast<std::size_t>(rank)].exchange(true)) return;
    for (int look = 0; look < 10'000 && begun < expected_; ++look) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(10ms);
  }

 private:
  int expected_;
  std::array<std::atomic<int>, 2> begun_{};
  std::array<std::atomic<bool>, 2> held_{};
};

struct Gathered {
  std::int64_t unit_bytes = 0, peak_bytes = 0;
};

/// On rank 0 of two, where `expected` units may be gathered at once.
Gathered gathered_with(int limit, std::int64_t limit_bytes, int expected) {
  RunSetup setup = setup_of(full_shard(2), 1);
  setup.settings.schedule.prefetch_depth = setup.settings.schedule.forward_prefetch = 5;
  setup.settings.schedule.gather_limit = limit;
  setup.settings.schedule.gather_limit_bytes = limit_bytes;
  SlowCompute slow(expected);
  setup.before_op = std::ref(slow);
  trace::Recorder recorder;
  setup.recorder = &recorder;
  std::vector<Life> lives;
  setup.after_step = [&](const StepEnd& end) {
    if (end.communicator.rank() == 0) lives = lives_of_gathered(end.rank.plan(), recorder.take());
  };
  run(setup);
  return {lives.at(0).size_bytes, peak_bytes(lives)};
}

TEST(GatheredInFlight, IsWhatTheLimitAllowsUnderSlowCompute) {
  const std::int64_t unit_bytes = gathered_with(1, INT64_MAX, 1).unit_bytes;
  for (const int limit : {1, 2, 3, 6})
    EXPECT_EQ(gathered_with(limit, INT64_MAX, limit).peak_bytes, limit * unit_bytes) << "limit " << limit;
  for (const int units : {1, 2, 4})
    for (const std::int64_t rest : {std::int64_t{0}, unit_bytes - 1})
      EXPECT_EQ(gathered_with(plan::unlimited, units * unit_bytes + rest, units).peak_bytes, units * unit_bytes)
          << units << " units and " << rest << " bytes";
}

/// Of this process, by whomever it was allocated.
std::int64_t heap_bytes() { return static_cast<std::int64_t>(mallinfo2().uordblks); }

/// Not where a sanitizer allocates.
bool heap_is_seen() {
  const std::int64_t before = heap_bytes();
  const auto block = std::make_unique<std::byte[]>(64 * 1024);
  return block && heap_bytes() - before >= 64 * 1024;
}

/// Sampled at each op of rank 0's compute lane, the smallest of each step: what others hold for a moment does not
/// count, what is never given back does.
std::vector<std::int64_t> heap_by_step(RunSetup setup, const std::function<void()>& each_step) {
  std::vector<std::int64_t> smallest(setup.learning_rates.size() + 1, INT64_MAX);
  std::int64_t now = 0;
  setup.before_step = [&](train::TrainingRank&, int rank, std::int64_t step) {
    if (rank != 0) return;
    now = step;
    each_step();
  };
  setup.before_op = [&](int rank, const plan::Op& op) {
    if (rank != 0 || op.lane != plan::Lane::compute) return;
    std::int64_t& seen = smallest[static_cast<std::size_t>(now)];
    seen = std::min(seen, heap_bytes());
  };
  run(setup);
  return smallest;
}

constexpr std::size_t steps = 120, warm = 20;

/// From the typical step of the first half to that of the second.
std::int64_t growth(const std::vector<std::int64_t>& by_step) {
  const auto typical = [](std::vector<std::int64_t> some) {
    std::ranges::nth_element(some, some.begin() + static_cast<std::ptrdiff_t>(some.size() / 2));
    return some[some.size() / 2];
  };
  const auto middle = by_step.begin() + (steps + warm) / 2;
  return typical({middle, by_step.end()}) - typical({by_step.begin() + warm, middle});
}

TEST(Memory, DoesNotGrowWithTheSteps) {
  if (!heap_is_seen()) GTEST_SKIP() << "a sanitizer allocates";
  constexpr std::int64_t slack_bytes = 8 * 1024, leak_bytes = 512;
  for (const plan::Mesh& mesh : {full_shard(1), full_shard(4), plan::Mesh{2, 1, 2}})
    EXPECT_LE(growth(heap_by_step(setup_of(mesh, steps), [] {})), slack_bytes);
  std::vector<std::unique_ptr<std::byte[]>> leak;
  const auto leaking =
      heap_by_step(setup_of({}, steps), [&] { leak.push_back(std::make_unique<std::byte[]>(leak_bytes)); });
  EXPECT_GT(growth(leaking), slack_bytes) << "the test would not see a leak";
}

TEST(Memory, OfTheArenaIsWhatThePlanSaysFromTheFirstStepOn) { expect_the_planned_arena(setup_of(full_shard(2), 6)); }

}  // namespace
}  // namespace foreshard::parity
