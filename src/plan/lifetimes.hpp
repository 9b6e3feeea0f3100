#pragma once
#include <optional>
#include <span>
#include <vector>

#include "plan/order.hpp"

namespace foreshard::plan {

/// When a buffer's bytes are in use, as clocks: what has certainly ended when its first op starts, and, by lane, the
/// position of the last op that touches it. A buffer that is kept from one micro-batch to the next lives through all of
/// them.
struct Lifetime {
  BufferId buffer;
  std::int64_t size_bytes = 0;
  OpId first_op;
  Clock birth{}, death{};
  bool compute_only = true;           ///< only the compute lane touches it
  std::uint32_t compute_end = never;  ///< a compute op starts after its death if that many ops of its lane have ended

  static constexpr std::uint32_t never = UINT32_MAX;
  bool always() const { return death[0] == never; }
};

/// True unless, in every timing that the waits permit, one buffer is dead before the other is born.
inline bool conflict(const Lifetime& a, const Lifetime& b) {
  if (a.compute_only || b.compute_only) return a.compute_end > b.birth[0] && b.compute_end > a.birth[0];
  return !covers(b.birth, a.death) && !covers(a.birth, b.death);
}

/// Lifetimes of all buffers that are not persistent, by buffer; none for persistent ones and those no op of the segment
/// touches.
std::vector<std::optional<Lifetime>> lifetimes(const Plan& plan, const Segment& segment, const Order& order,
                                               int instance = 0);

/// The segments whose lifetimes cover those of all: the first, and the last where it touches more (what is reduced only
/// then) or gathers less (what is kept since the first), since the waits of any other micro-batch permit no timing that
/// these do not; and the update where it needs buffers that are not persistent.
std::vector<const Segment*> covering_segments(const Plan& plan);

/// Pairs (a, b) where b's instance in the later micro-batch may be born while a's in the earlier one is alive.
/// Buffers that are kept through all micro-batches are left out before the update, where they end: they conflict with
/// everything anyway.
std::vector<std::pair<BufferId, BufferId>> conflicts_across(const Plan& plan, const Segment& before,
                                                            const Segment& segment);

}  // namespace foreshard::plan
