#include "plan/query.hpp"

#include <algorithm>
#include <map>

#include "plan/lifetimes.hpp"

namespace foreshard::plan {
namespace {

template <class Accept>
std::vector<OpId> filter(const Segment& segment, const Accept& accept) {
  std::vector<OpId> found;
  for (std::uint32_t id = segment.first_op; id < segment.first_op + segment.op_count; ++id)
    if (accept(OpId{id})) found.push_back({id});
  return found;
}

/// The heaviest subset of `lives` whose members conflict pairwise, among those from `next` on that conflict with all of
/// `chosen`.
std::int64_t heaviest_clique(const std::vector<const Lifetime*>& lives, std::size_t next,
                             std::vector<const Lifetime*>& chosen) {
  if (next == lives.size()) return 0;
  std::int64_t best = heaviest_clique(lives, next + 1, chosen);
  if (std::ranges::all_of(chosen, [&](const Lifetime* other) { return conflict(*other, *lives[next]); })) {
    chosen.push_back(lives[next]);
    best = std::max(best, lives[next]->size_bytes + heaviest_clique(lives, next + 1, chosen));
    chosen.pop_back();
  }
  return best;
}

/// True if it is alive in every timing while the compute op `op` runs, given that it may be.
bool is_certain(const Order& order, OpId op, const Lifetime& life) {
  const bool born = life.compute_only || life.always() || order.precedes(life.first_op, op);
  return born && (life.compute_only || life.death[0] >= order.position(op));
}

/// Live bytes while the compute op `op` runs, in the worst timing: those that live for certain, and of the others those
/// that can be alive at the same time as each other and the op.
std::int64_t live_during(const Order& order, OpId op, const std::vector<std::optional<Lifetime>>& lives) {
  const Clock& start = order.start(op);
  const std::uint32_t position = order.position(op);
  std::int64_t certain = 0;
  std::vector<const Lifetime*> possible, chosen;
  for (const auto& life : lives) {
    if (!life || covers(start, life->death) || (life->birth[0] >= position && !life->always())) continue;
    if (is_certain(order, op, *life))
      certain += life->size_bytes;
    else
      possible.push_back(&*life);
  }
  return certain + heaviest_clique(possible, 0, chosen);
}

}  // namespace

std::vector<OpId> find(const Plan& plan, const Segment& segment, const OpQuery& query) {
  return filter(segment, [&](OpId id) {
    const Op& op = plan.ops[id.value];
    return op.kind == query.kind && (!query.unit.valid() || op.unit == query.unit) &&
           (query.any_phase || op.phase == query.phase);
  });
}

VisitOps find_visit(const Plan& plan, const Segment& segment, UnitId unit, Phase phase) {
  const auto ops = filter(segment, [&](OpId id) {
    const Op& op = plan.ops[id.value];
    return op.lane == Lane::compute && op.unit == unit && op.phase == phase;
  });
  return ops.empty() ? VisitOps{} : VisitOps{ops.front(), ops.back()};
}

bool may_overlap(const Plan& plan, const Segment& segment, OpId a, OpId b) {
  const Order order(plan, segment);
  return !order.precedes(a, b) && !order.precedes(b, a);
}

double compute_flops(const Plan& plan) {
  double flops = 0;
  for (const Segment& segment : plan.segments)
    for (const Op& op : plan.ops_of(segment)) flops += plan.times(segment) * op.cost.flops;
  return flops;
}

std::int64_t trained_parameters(const Plan& plan) {
  std::int64_t trained = 0;
  for (const FlatParameter& unit : plan.units) trained += unit.trainable.elements;
  return trained;
}

ArenaRange longest_transient_range(const Plan& plan) {
  std::map<std::int64_t, std::int64_t> taken{{plan.arena_bytes, plan.arena_bytes}};  // begin -> end
  for (const Buffer& buffer : plan.buffers)
    if (buffer.persistent && buffer.space == Space::device)
      taken[buffer.offset_bytes] = buffer.offset_bytes + buffer.size_bytes;
  ArenaRange longest;
  std::int64_t end = 0;
  for (const auto& [begin, next] : taken) {
    if (begin - end > longest.size_bytes) longest = {end, begin - end};
    end = std::max(end, next);
  }
  return longest;
}

std::int64_t memory_lower_bound(const Plan& plan) {
  std::int64_t persistent = 0, live = 0;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.persistent && buffer.space == Space::device) persistent += buffer.size_bytes;
  for (const Segment* segment : covering_segments(plan)) {
    const Order order(plan, *segment);
    const auto lives = lifetimes(plan, *segment, order);
    for (const OpId op : filter(*segment, [&](OpId id) { return plan.ops[id.value].lane == Lane::compute; }))
      live = std::max(live, live_during(order, op, lives));
  }
  return persistent + live;
}

}  // namespace foreshard::plan
