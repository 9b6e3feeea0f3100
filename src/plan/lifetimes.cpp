#include "plan/lifetimes.hpp"

#include <algorithm>
#include <limits>

namespace foreshard::plan {
namespace {

constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();

void live_always(Lifetime& life) {
  life.birth.fill(0);
  life.death.fill(never);
  life.compute_only = false;
}

bool lives_always(const Lifetime& life) { return life.death[0] == never; }

/// Buffers whose first use in the segment is a read hold what an earlier micro-batch left there.
bool first_use_reads(const Plan& plan, const Segment& segment, BufferId buffer) {
  for (const Op& op : plan.ops_of(segment))
    for (const Operand& operand : std::span(plan.operands).subspan(op.first_operand, op.input_count + op.output_count))
      if (operand.buffer == buffer) return !operand.written;
  return false;
}

void keep_across_micro_batches(const Plan& plan, std::vector<std::optional<Lifetime>>& lives) {
  const auto last = std::ranges::find(plan.segments, Segment::Name::last, &Segment::name);
  if (last == plan.segments.end()) return;
  for (auto& life : lives)
    if (life && plan.buffers[life->buffer.value].memory == MemoryClass::gathered &&
        first_use_reads(plan, *last, life->buffer))
      live_always(*life);
}

}  // namespace

std::vector<std::optional<Lifetime>> lifetimes(const Plan& plan, const Segment& segment, const Order& order,
                                               int instance) {
  std::vector<std::optional<Lifetime>> lives(plan.buffers.size());
  for (std::uint32_t i = segment.first_op; i < segment.first_op + segment.op_count; ++i) {
    const Op& op = plan.ops[i];
    for (const Operand& operand :
         std::span(plan.operands).subspan(op.first_operand, op.input_count + op.output_count)) {
      if (!operand.present() || plan.buffers[operand.buffer.value].persistent) continue;
      auto& life = lives[operand.buffer.value];
      if (!life)
        life = Lifetime{operand.buffer, plan.buffers[operand.buffer.value].size_bytes, order.start({i}, instance)};
      life->death[static_cast<std::size_t>(op.lane)] = order.position({i}, instance);
      life->compute_only &= op.lane == Lane::compute;
    }
  }
  keep_across_micro_batches(plan, lives);
  return lives;
}

std::vector<std::pair<BufferId, BufferId>> conflicts_across(const Plan& plan, const Segment& before,
                                                            const Segment& segment) {
  const Order order(plan, before, segment);
  auto earlier = lifetimes(plan, before, order, 0), later = lifetimes(plan, segment, order, 1);
  for (auto* lives : {&earlier, &later})
    for (auto& life : *lives)
      if (life && lives_always(*life)) life.reset();
  // A buffer born after everything of the earlier segment has ended conflicts with none of it.
  Clock end{};
  for (const auto& a : earlier)
    if (a)
      for (std::size_t lane = 0; lane < lane_count; ++lane) end[lane] = std::max(end[lane], a->death[lane]);
  std::vector<std::pair<BufferId, BufferId>> pairs;
  for (const auto& b : later) {
    if (!b || covers(b->birth, end)) continue;
    for (const auto& a : earlier)
      if (a && !covers(b->birth, a->death)) pairs.emplace_back(a->buffer, b->buffer);
  }
  return pairs;
}

}  // namespace foreshard::plan
