#include "plan/lifetimes.hpp"

#include <algorithm>

namespace foreshard::plan {
namespace {

void live_always(Lifetime& life) {
  life.birth.fill(0);
  life.death.fill(Lifetime::never);
  life.compute_end = Lifetime::never;
  life.compute_only = false;
}

/// By buffer, whether its first use in the segment reads or adds: it holds what an earlier micro-batch left there.
std::vector<bool> first_uses_that_read(const Plan& plan, const Segment& segment) {
  std::vector<bool> reads(plan.buffers.size()), used(plan.buffers.size());
  for (const Op& op : plan.ops_of(segment))
    for (const Operand& operand :
         std::span(plan.operands).subspan(op.first_operand, op.input_count + op.output_count)) {
      if (!operand.present() || used[operand.buffer.value]) continue;
      used[operand.buffer.value] = true;
      reads[operand.buffer.value] = !operand.written || op.accumulate;
    }
  return reads;
}

/// Nothing else is carried from one micro-batch to the next.
bool may_be_kept(MemoryClass memory) {
  return memory == MemoryClass::gathered || memory == MemoryClass::unsharded_gradients;
}

void keep_across_micro_batches(const Plan& plan, std::vector<std::optional<Lifetime>>& lives) {
  const auto last = std::ranges::find(plan.segments, Segment::Name::last, &Segment::name);
  if (last == plan.segments.end()) return;
  const std::vector<bool> reads = first_uses_that_read(plan, *last);
  for (auto& life : lives)
    if (life && may_be_kept(plan.buffers[life->buffer.value].memory) && reads[life->buffer.value]) live_always(*life);
}

void leave_out_kept(const Plan& plan, std::vector<std::optional<Lifetime>>& lives) {
  keep_across_micro_batches(plan, lives);
  for (auto& life : lives)
    if (life && life->always()) life.reset();
}

std::vector<bool> touched(const Plan& plan, const Segment& segment) {
  std::vector<bool> buffers(plan.buffers.size());
  for (const Op& op : plan.ops_of(segment))
    for (const Operand& operand : std::span(plan.operands).subspan(op.first_operand, op.input_count + op.output_count))
      if (operand.present()) buffers[operand.buffer.value] = true;
  return buffers;
}

/// Ops that bring parameters of units other than the root.
std::ptrdiff_t gathers(const Plan& plan, const Segment& segment) {
  return std::ranges::count_if(plan.ops_of(segment), [](const Op& op) {
    return (op.kind == OpKind::all_gather || op.kind == OpKind::fetch) && op.unit != model::root_unit;
  });
}

/// The last micro-batch touches more, or gathers less.
bool differs(const Plan& plan, const Segment& first, const Segment& last) {
  const std::vector<bool> in_first = touched(plan, first), in_last = touched(plan, last);
  const bool touches_more =
      !std::ranges::equal(in_first, in_last, [](bool first_has, bool last_has) { return first_has || !last_has; });
  return touches_more || gathers(plan, first) != gathers(plan, last);
}

/// Copies to and from host memory need buffers of their own.
bool touches_transient(const Plan& plan, const Segment& segment) {
  const std::vector<bool> buffers = touched(plan, segment);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i] && !plan.buffers[i].persistent) return true;
  return false;
}

std::vector<OpId> compute_ops(const Plan& plan, const Segment& segment) {
  std::vector<OpId> ops;
  for (std::uint32_t i = segment.first_op; i < segment.first_op + segment.op_count; ++i)
    if (plan.ops[i].lane == Lane::compute) ops.push_back({i});
  return ops;
}

/// What has ended when a compute op starts only grows along that lane.
void set_compute_end(Lifetime& life, const std::vector<OpId>& compute, const Order& order, int instance) {
  if (life.compute_only) {
    life.compute_end = life.death[0];
    return;
  }
  const auto first_after =
      std::ranges::partition_point(compute, [&](OpId op) { return !covers(order.start(op, instance), life.death); });
  if (first_after != compute.end()) life.compute_end = order.start(*first_after, instance)[0];
}

std::vector<std::optional<Lifetime>> lives_within(const Plan& plan, const Segment& segment, const Order& order,
                                                  int instance) {
  std::vector<std::optional<Lifetime>> lives(plan.buffers.size());
  for (std::uint32_t i = segment.first_op; i < segment.first_op + segment.op_count; ++i) {
    const Op& op = plan.ops[i];
    for (const Operand& operand :
         std::span(plan.operands).subspan(op.first_operand, op.input_count + op.output_count)) {
      if (!operand.present() || plan.buffers[operand.buffer.value].persistent) continue;
      auto& life = lives[operand.buffer.value];
      if (!life)
        life = Lifetime{operand.buffer, plan.buffers[operand.buffer.value].size_bytes, {i}, order.start({i}, instance)};
      life->death[static_cast<std::size_t>(op.lane)] = order.position({i}, instance);
      life->compute_only &= op.lane == Lane::compute;
    }
  }
  const std::vector<OpId> compute = compute_ops(plan, segment);
  for (auto& life : lives)
    if (life) set_compute_end(*life, compute, order, instance);
  return lives;
}

}  // namespace

std::vector<std::optional<Lifetime>> lifetimes(const Plan& plan, const Segment& segment, const Order& order,
                                               int instance) {
  auto lives = lives_within(plan, segment, order, instance);
  keep_across_micro_batches(plan, lives);
  return lives;
}

std::vector<const Segment*> covering_segments(const Plan& plan) {
  std::vector<const Segment*> covering{&plan.segments.front()};
  const Segment& first = plan.segments.front();
  const auto last = std::ranges::find(plan.segments, Segment::Name::last, &Segment::name);
  const Segment& end = plan.segments.back();
  if (last != plan.segments.end() && differs(plan, first, *last)) covering.push_back(&*last);
  if (end.name == Segment::Name::update && touches_transient(plan, end)) covering.push_back(&end);
  return covering;
}

std::vector<std::pair<BufferId, BufferId>> conflicts_across(const Plan& plan, const Segment& before,
                                                            const Segment& segment) {
  const Order order(plan, before, segment);
  auto earlier = lives_within(plan, before, order, 0), later = lives_within(plan, segment, order, 1);
  if (segment.name != Segment::Name::update)
    for (auto* lives : {&earlier, &later}) leave_out_kept(plan, *lives);
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
