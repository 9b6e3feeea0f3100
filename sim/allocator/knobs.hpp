#pragma once
#include "sim/allocator/peak.hpp"

namespace foreshard::sim::allocator {

/// What would lower the peak of a report, those that save the most first; less than a hundredth of it is left out.
///
/// By replay: expandable segments; frees that wait for no other stream (FSDP1's rate limiter comes near it, FSDP2 and
/// gathers on the compute stream reach it). By labels: recompute keeps one unit's activations, less prefetch one
/// gathered unit, reducing after every micro-batch one unit's gradients; twice the shards halve what is sharded.
std::vector<Knob> knobs_of(const EventList& list, const ReplayOptions& options, const PeakReport& report);

}  // namespace foreshard::sim::allocator
