#pragma once
#include <optional>

#include "sim/allocator/caching_allocator.hpp"
#include "sim/allocator/event_list.hpp"

namespace foreshard::sim::allocator {

struct ReplayOptions {
  Settings settings;
  Bytes device_bytes = 80 * gib;
  Bytes outside_bytes = 0;
  DriverCost cost;
  bool stalls_shift = true;      ///< times do not hold stalls yet: what follows one is later; else they do
  bool hold_for_streams = true;  ///< freed blocks wait for other streams; false: what if none did
};

struct Sample {
  Nanoseconds at = 0;
  Bytes allocated = 0, active = 0, reserved = 0;
};

/// Carries out a list of events, one by one. An allocation that stalls the host makes everything after it later by as
/// much, unless times hold stalls already. The list must outlive it.
class Replay {
 public:
  Replay(const EventList& list, const ReplayOptions& options);

  bool done() const { return next_ == list_->events.size() || failure_; }
  /// One event. Nothing more happens after an allocation that failed.
  void step();
  void run() {
    while (!done()) step();
  }

  const CachingAllocator& allocator() const { return allocator_; }
  const std::optional<OutOfMemory>& failure() const { return failure_; }
  std::size_t events_done() const { return next_; }
  Nanoseconds stalled() const { return late_; }
  /// The blocks that are allocated now, in the order of their allocation.
  std::vector<const Block*> live() const;
  /// The state after the last event.
  Sample sample() const;
  int phase() const { return phase_; }  ///< of the last event, -1: none yet

 private:
  void allocate(const Event& event);
  void free(const Event& event);

  const EventList* list_;
  ReplayOptions options_;
  CachingAllocator allocator_;
  std::vector<Nanoseconds> free_at_;  ///< by event: when a freed block's other streams have passed; 0: none used it
  std::vector<Block*> blocks_;        ///< by number
  std::size_t next_ = 0;
  Nanoseconds late_ = 0, now_ = 0;
  int phase_ = -1;
  std::optional<OutOfMemory> failure_;
};

/// A sample after each event that changed one of its numbers.
std::vector<Sample> timeline_of(const EventList& list, const ReplayOptions& options);

/// At most `count` samples of equal parts of the time, each with the largest value of every number in its part.
std::vector<Sample> coarsened(const std::vector<Sample>& timeline, std::size_t count);

}  // namespace foreshard::sim::allocator
