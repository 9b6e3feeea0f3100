#pragma once
#include <span>
#include <vector>

#include "plan/plan.hpp"
#include "trace/tables.hpp"

namespace foreshard::trace {

/// Live bytes of the device's arena from a moment on, until the next point.
struct MemoryPoint {
  std::int64_t time_ns = 0;
  BytesByClass bytes{};
  std::int64_t total() const;
};

/// Memory over time of one rank's events: a point at the first event and one wherever something changes, in order of
/// time. Persistent buffers always count. Any other buffer lives, in each run of a segment, from the start of the first
/// op that touches it to the end of the last; if that run reads it before writing it, it has been alive since the run
/// before. Ops without an event (a trace that was cut) keep nothing alive.
std::vector<MemoryPoint> memory_timeline(const plan::Plan& plan, std::span<const Event> events);

/// The first point with the largest total; throws ContractError if there is none.
const MemoryPoint& peak_of(std::span<const MemoryPoint> timeline);

}  // namespace foreshard::trace
