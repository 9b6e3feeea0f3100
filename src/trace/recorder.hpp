#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/op.hpp"

namespace foreshard::trace {

/// One executed op. Times are nanoseconds of one clock per node (CLOCK_MONOTONIC), or of virtual time.
struct Event {
  std::int64_t start_ns = 0, duration_ns = 0;
  std::uint32_t op = 0;  ///< index into Plan::ops
  std::int32_t step = 0, micro_batch = 0;
  std::uint64_t received_bytes = 0;  ///< from other ranks, as counted by the communicator
};

/// Events of one rank, one list per lane. Each lane's list is written by that lane's thread only; `reserve` and `take`
/// are called between steps.
class Recorder {
 public:
  /// Makes room for `events` more events on every lane, so that `record` does not allocate inside a step.
  void reserve(std::size_t events) {
    for (auto& lane : lanes_) lane.events.reserve(lane.events.size() + events);
  }

  void record(plan::Lane lane, const Event& event) { lanes_[static_cast<std::size_t>(lane)].events.push_back(event); }

  /// All events since the last call, lane by lane, each lane in order of start. Keeps the room that was reserved.
  std::vector<Event> take() {
    std::vector<Event> all;
    std::size_t count = 0;
    for (const auto& lane : lanes_) count += lane.events.size();
    all.reserve(count);
    for (auto& lane : lanes_) {
      all.insert(all.end(), lane.events.begin(), lane.events.end());
      lane.events.clear();
    }
    return all;
  }

 private:
  struct alignas(64) LaneEvents {  // a cache line each: lanes are threads
    std::vector<Event> events;
  };
  std::array<LaneEvents, plan::lane_count> lanes_;
};

}  // namespace foreshard::trace
