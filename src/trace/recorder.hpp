#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "plan/op.hpp"

namespace foreshard::trace {

/// One executed op. Times are nanoseconds of one clock per node (CLOCK_MONOTONIC), or of virtual time.
struct Event {
  std::int64_t start_ns = 0, duration_ns = 0;
  std::uint32_t op = 0;               ///< index into Plan::ops
  std::int32_t step = 0, micro_batch = 0;
  std::uint64_t received_bytes = 0;   ///< from other ranks, as counted by the communicator
};

/// Events of one rank, one list per lane. Each lane's list is written by that lane's thread only; `take` is called between steps.
class Recorder {
 public:
  void record(plan::Lane lane, const Event& event) { lanes_[static_cast<std::size_t>(lane)].push_back(event); }

  /// All events since the last call, lane by lane, each lane in order of start.
  std::vector<Event> take() {
    std::vector<Event> all;
    for (auto& lane : lanes_) {
      all.insert(all.end(), lane.begin(), lane.end());
      lane.clear();
    }
    return all;
  }

 private:
  std::array<std::vector<Event>, plan::lane_count> lanes_;
};

}  // namespace foreshard::trace
