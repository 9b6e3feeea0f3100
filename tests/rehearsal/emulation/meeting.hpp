#pragma once
#include <cstddef>
#include <deque>

#include "rehearsal/emulation/device.hpp"

namespace rehearsal {

struct Thread;

struct Meeting {
  static constexpr std::size_t most_bytes = 32;

  unsigned mask = 0, come = 0, gone = 0;
  const char* what = "";
  Where where;
  Thread* waiting[32] = {};
  alignas(16) char brought[32][most_bytes] = {};

  bool open() const { return mask != 0 && come != mask; }
  bool free() const { return mask == 0; }
};

/// The meetings of one warp: several may be under way, of different lanes.
class Meetings {
 public:
  Meeting& join(unsigned mask) {
    for (Meeting& meeting : meetings_)
      if (meeting.open() && meeting.mask == mask) return meeting;
    Meeting& meeting = unused();
    meeting.mask = mask;
    meeting.come = meeting.gone = 0;
    return meeting;
  }
  void clear() { meetings_.clear(); }

 private:
  Meeting& unused() {
    for (Meeting& meeting : meetings_)
      if (meeting.free()) return meeting;
    return meetings_.emplace_back();
  }

  std::deque<Meeting> meetings_;
};

}  // namespace rehearsal
