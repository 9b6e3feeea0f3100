#pragma once
#include "rehearsal/runtime/capture.hpp"
#include "rehearsal/runtime/ticket.hpp"

/// The last point that it was recorded at: of a stream's work, or of a capture. Guarded by capture_mutex().
struct CUevent_st {
  int device = 0;
  bool timed = true;
  rehearsal::TicketPtr ticket;
  std::shared_ptr<rehearsal::Capture> capture;
  int point = -1;
  rehearsal::Known known;
};
