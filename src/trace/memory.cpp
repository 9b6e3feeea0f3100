#include "trace/memory.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/error.hpp"

namespace foreshard::trace {
namespace {

using plan::Plan;

struct Life {
  std::int64_t begin_ns = 0, end_ns = 0;
};

/// How one run of a segment touches a buffer.
struct Touch {
  Life life;
  bool read_first = false;  ///< its value comes from the run before
};

/// A run of a segment: all events of one step and micro-batch, in order of op.
using Run = std::map<std::uint32_t, Event>;
using RunKey = std::tuple<std::int32_t, std::int32_t>;  ///< step, micro-batch

std::map<RunKey, Run> runs_of(std::span<const Event> events) {
  std::map<RunKey, Run> runs;
  for (const Event& event : events) runs[{event.step, event.micro_batch}].emplace(event.op, event);
  return runs;
}

void touch(std::map<std::uint32_t, Touch>& touches, plan::BufferId buffer, const Event& event, bool reads) {
  const Life life{event.start_ns, event.start_ns + event.duration_ns};
  const auto [entry, is_new] = touches.try_emplace(buffer.value, Touch{life, reads});
  if (is_new) return;
  Life& known = entry->second.life;
  known = {std::min(known.begin_ns, life.begin_ns), std::max(known.end_ns, life.end_ns)};
}

std::map<std::uint32_t, Touch> touches_of(const Plan& plan, const Run& run) {
  std::map<std::uint32_t, Touch> touches;
  for (const auto& [index, event] : run) {
    const plan::Op& op = plan.ops[index];
    for (const plan::Operand& operand : plan.inputs(op))
      if (operand.present()) touch(touches, operand.buffer, event, true);
    for (const plan::Operand& operand : plan.outputs(op))
      if (operand.present()) touch(touches, operand.buffer, event, op.accumulate);
  }
  return touches;
}

/// Lives of every buffer that is not persistent.
std::vector<std::vector<Life>> lives_of(const Plan& plan, std::span<const Event> events) {
  std::vector<std::vector<Life>> lives(plan.buffers.size());
  for (const auto& [key, run] : runs_of(events))
    for (const auto& [buffer, touch] : touches_of(plan, run)) {
      auto& known = lives[buffer];
      if (touch.read_first && !known.empty())
        known.back().end_ns = std::max(known.back().end_ns, touch.life.end_ns);
      else
        known.push_back(touch.life);
    }
  return lives;
}

struct Change {
  std::int64_t time_ns = 0;
  std::size_t memory = 0;
  std::int64_t bytes = 0;
};

std::vector<Change> changes_of(const Plan& plan, std::span<const Event> events) {
  std::vector<Change> changes;
  const auto lives = lives_of(plan, events);
  for (std::size_t i = 0; i < lives.size(); ++i) {
    const plan::Buffer& buffer = plan.buffers[i];
    if (buffer.persistent || buffer.space == plan::Space::host) continue;
    for (const Life& life : lives[i]) {
      changes.push_back({life.begin_ns, static_cast<std::size_t>(buffer.memory), buffer.size_bytes});
      changes.push_back({life.end_ns, static_cast<std::size_t>(buffer.memory), -buffer.size_bytes});
    }
  }
  std::ranges::sort(changes, {}, &Change::time_ns);
  return changes;
}

BytesByClass persistent_bytes(const Plan& plan) {
  BytesByClass bytes{};
  for (const plan::Buffer& buffer : plan.buffers)
    if (buffer.persistent && buffer.space == plan::Space::device)
      bytes[static_cast<std::size_t>(buffer.memory)] += buffer.size_bytes;
  return bytes;
}

}  // namespace

std::int64_t MemoryPoint::total() const { return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}); }

std::vector<MemoryPoint> memory_timeline(const Plan& plan, std::span<const Event> events) {
  if (events.empty()) return {};
  const auto first = std::ranges::min_element(events, {}, &Event::start_ns);
  std::vector<MemoryPoint> points{{first->start_ns, persistent_bytes(plan)}};
  for (const Change& change : changes_of(plan, events)) {
    if (change.time_ns != points.back().time_ns) points.push_back({change.time_ns, points.back().bytes});
    points.back().bytes[change.memory] += change.bytes;
  }
  return points;
}

const MemoryPoint& peak_of(std::span<const MemoryPoint> timeline) {
  FORESHARD_EXPECT(!timeline.empty(), "the timeline has no points");
  return *std::ranges::max_element(timeline, {}, &MemoryPoint::total);
}

}  // namespace foreshard::trace
