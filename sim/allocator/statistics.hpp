#pragma once
#include <algorithm>
#include <cstdint>

#include "sim/allocator/settings.hpp"

namespace foreshard::sim::allocator {

/// A quantity that rises and falls.
struct Gauge {
  Bytes current = 0, peak = 0;
  Bytes total = 0;  ///< sum of all rises

  void add(Bytes amount) {
    current += amount, total += amount;
    peak = std::max(peak, current);
  }
  void subtract(Bytes amount) { current -= amount; }
  bool operator==(const Gauge&) const = default;
};

/// Both pools together, as torch.cuda.memory_stats() counts them under "all".
struct Statistics {
  Gauge requested;       ///< before rounding, of active blocks
  Gauge allocated;       ///< blocks that tensors hold
  Gauge active;          ///< these, and freed ones that other streams may still use
  Gauge reserved;        ///< segments of the driver; mapped pages
  Gauge inactive_split;  ///< free blocks of segments in partial use; expandable segments excluded
  std::int64_t retries = 0, ooms = 0;
  std::int64_t device_allocs = 0, device_frees = 0;  ///< of segments, or maps and unmaps
  std::int64_t syncs = 0;                            ///< waits for all outstanding events

  void reset_peaks() {
    for (Gauge* gauge : {&requested, &allocated, &active, &reserved, &inactive_split}) gauge->peak = gauge->current;
  }
  bool operator==(const Statistics&) const = default;
};

}  // namespace foreshard::sim::allocator
