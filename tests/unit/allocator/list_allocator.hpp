#pragma once
#include <map>
#include <vector>

#include "sim/allocator/driver_cost.hpp"
#include "sim/allocator/statistics.hpp"

namespace foreshard::sim::allocator {

/// The rules of PyTorch's caching allocator over plain lists: every search looks at every piece, every statistic is a
/// sum over all pieces, taken anew after each elementary change. Written apart from CachingAllocator, from the rules.
class ListAllocator {
 public:
  ListAllocator(const Settings& settings, Bytes device, const DriverCost& cost)
      : settings_(settings), device_(device), cost_(cost) {}

  struct Answer {
    int name = -1;  ///< of the allocation; -1: out of memory
    Nanoseconds host_at = 0;
  };
  Answer allocate(Bytes bytes, int stream, Nanoseconds now, Nanoseconds idle_at);
  void free(int name);
  void free(int name, Nanoseconds completes_at);
  Nanoseconds empty_cache(Nanoseconds now, Nanoseconds idle_at);
  void set_outside(Bytes bytes) { outside_ = bytes; }

  const Statistics& statistics() const { return statistics_; }

 private:
  enum class State { free, held, waiting, unmapped };
  struct Piece {
    Bytes size = 0, requested = 0;
    State state = State::free;
    int name = -1;
    long since = 0;
  };
  struct Segment {
    int stream = 0;
    bool small = false, expandable = false;
    std::vector<Piece> pieces;
  };
  struct Spot {
    std::size_t segment = 0, piece = 0;
  };
  struct Ask {
    Bytes bytes = 0, rounded = 0, segment = 0;
    int stream = 0;
    bool small = false;
  };

  Ask ask_of(Bytes bytes, int stream) const;
  Bytes page_of(const Segment& segment) const { return segment.small ? 2 * mib : settings_.large_segment_bytes; }
  Piece& at(const Spot& spot) { return segments_[spot.segment].pieces[spot.piece]; }
  Bytes growth(const Spot& spot) const;
  Spot find(int name) const;
  bool search(const Ask& ask, Spot& spot);
  bool extend(const Ask& ask, Spot& spot);
  bool extend_expandable(const Ask& ask, Spot& spot);
  bool map(Spot spot, Bytes bytes);
  void join(Segment& segment);
  void return_piece(int name);
  void process(Nanoseconds until);
  void collect();
  bool release_oversize(const Ask& ask);
  void release_all();
  void release(std::size_t segment);
  void unmap_whole_pages(std::size_t segment);
  Bytes reserved() const;
  Bytes driver_free() const { return device_ - outside_ - reserved(); }
  void observe();

  Settings settings_;
  Bytes device_, outside_ = 0;
  DriverCost cost_;
  std::vector<Segment> segments_;
  std::multimap<Nanoseconds, int> events_;
  int names_ = 0;
  std::map<bool, long> searches_;  ///< by pool
  Nanoseconds clock_ = 0, idle_at_ = 0;
  Statistics statistics_;
};

}  // namespace foreshard::sim::allocator
