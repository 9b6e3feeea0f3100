#include "sim/allocator/knobs.hpp"

#include <algorithm>

namespace foreshard::sim::allocator {
namespace {

Bytes reserved_peak(const EventList& list, const ReplayOptions& options) {
  Replay replay(list, options);
  replay.run();
  // What failed would have needed more than the device has: no peak to compare with.
  return replay.failure() ? options.device_bytes : replay.allocator().statistics().reserved.peak;
}

/// Bytes of a class beyond its largest unit.
Bytes beyond_one_unit(const PeakReport& report, MemoryClass kind) {
  Bytes sum = 0, largest = 0;
  for (const Holding& holding : report.holdings)
    if (class_of(holding.label) == kind) sum += holding.bytes, largest = std::max(largest, holding.bytes);
  return sum - largest;
}

}  // namespace

std::vector<Knob> knobs_of(const EventList& list, const ReplayOptions& options, const PeakReport& report) {
  const auto of = [&](MemoryClass kind) { return report.by_class[std::size_t(kind)]; };
  const Bytes sharded = of(MemoryClass::parameters) + of(MemoryClass::optimizer);
  std::vector<Knob> knobs{
      {"recompute activations (full)", beyond_one_unit(report, MemoryClass::activations), false},
      {"less prefetch, or resharding after forward", beyond_one_unit(report, MemoryClass::gathered), false},
      {"reducing gradients in every micro-batch", beyond_one_unit(report, MemoryClass::gradients), false},
      {"twice the shards", sharded / 2, false},
  };
  const Bytes peak = report.out_of_memory ? options.device_bytes : report.reserved_peak;
  if (!options.settings.expandable_segments) {
    ReplayOptions expandable = options;
    expandable.settings.expandable_segments = true;
    knobs.push_back({"expandable_segments:True", peak - reserved_peak(list, expandable), true});
  }
  if (report.waiting > 0) {
    ReplayOptions ordered = options;
    ordered.hold_for_streams = false;
    knobs.push_back({"limit_all_gathers, or FSDP2", peak - reserved_peak(list, ordered), false});
  }
  std::erase_if(knobs, [&](const Knob& knob) { return knob.saves < std::max<Bytes>(1, peak / 100); });
  std::ranges::stable_sort(knobs, std::ranges::greater{}, &Knob::saves);
  return knobs;
}

}  // namespace foreshard::sim::allocator
