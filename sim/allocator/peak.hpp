#pragma once
#include <nlohmann/json_fwd.hpp>

#include "sim/allocator/replay.hpp"

namespace foreshard::sim::allocator {

/// Blocks of one label, together.
struct Holding {
  Label label = Label::none;
  Bytes bytes = 0;
};

/// An allocation and where in the run it was made.
struct Moment {
  Nanoseconds at = 0;
  std::size_t event = 0;  ///< index in the list
  std::string phase;      ///< empty where the list names none
  Label label = Label::none;
  Bytes bytes = 0;  ///< asked
};

/// Something that would lower a peak.
struct Knob {
  std::string name;  ///< as users write it: "limit_all_gathers=True", "expandable_segments:True"
  Bytes saves = 0;
  bool exact = false;  ///< from a replay with it; else the most that it can save
};

/// Why memory is what it is when active bytes are at their peak (the first time), or when memory ran out.
struct PeakReport {
  bool out_of_memory = false;
  Moment moment;           ///< the allocation that made the peak, or failed
  Moment largest_request;  ///< of the whole run: the contiguous room that it needs at least
  Bytes reserved = 0, active = 0, allocated = 0, requested = 0;
  Bytes reserved_peak = 0;        ///< of the whole run
  BytesByClass by_class{};        ///< of allocated blocks
  std::vector<Holding> holdings;  ///< of allocated blocks by class and unit, the largest first
  Bytes waiting = 0;              ///< freed, but other streams may still use it
  Bytes inactive_split = 0;       ///< free, in segments that are partly in use
  Bytes cached = 0;               ///< free, the rest: whole segments, ends of expandable ones
  Bytes rounding = 0;             ///< allocated beyond what was asked
  Bytes outside = 0, device = 0;
  std::vector<Knob> knobs;  ///< those that save the most first

  /// Free bytes that no request of the largest size can use, as a part of reserved.
  double fragmentation() const { return reserved > 0 ? double(inactive_split) / double(reserved) : 0; }
  std::string text() const;
};

/// Replays the list, several times: once to find the peak, once up to it, and once for each knob of the allocator.
/// Knobs of the run (recompute, prefetch, sharding) are judged by the labels of what is allocated at the peak.
PeakReport explain_peak(const EventList& list, const ReplayOptions& options);

nlohmann::json to_json(const PeakReport& report);

}  // namespace foreshard::sim::allocator
