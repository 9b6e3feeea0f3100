#include "rehearsal/runtime/event.hpp"

#include "rehearsal/runtime/state.hpp"
#include "rehearsal/runtime/stream.hpp"

namespace rehearsal {
namespace {

cudaError_t record(CUevent_st& event, Stream& stream) {
  const std::lock_guard lock(capture_mutex());
  if (stream.device() != event.device) return cudaErrorInvalidResourceHandle;
  event.capture = stream.capture;
  event.ticket.reset();
  if (event.capture) {
    if (!event.capture->valid()) return cudaErrorStreamCaptureInvalidated;
    event.point = event.capture->add_point(stream, event.known);
  } else {
    event.ticket = stream.mark();
  }
  return cudaSuccess;
}

cudaError_t wait_in_capture(Stream& stream, CUevent_st& event) {
  if (!event.capture) return stream.capture->invalidate(cudaErrorStreamCaptureIsolation);
  if (!stream.capture) {
    if (!event.capture->valid()) return cudaErrorStreamCaptureInvalidated;
    event.capture->join(stream);
  }
  if (stream.capture != event.capture) return stream.capture->invalidate(cudaErrorStreamCaptureMerge);
  return stream.capture->add_wait(stream, event.point, event.known);
}

/// An event whose capture has ended is a point of no stream.
bool captured_before(const CUevent_st& event) { return event.capture && event.capture->ended(); }

cudaError_t wait(Stream& stream, CUevent_st& event) {
  const std::lock_guard lock(capture_mutex());
  if (captured_before(event)) return cudaErrorCapturedEvent;
  if (stream.capture || event.capture) return wait_in_capture(stream, event);
  if (event.ticket) stream.add({.run = {}, .wait = event.ticket, .reach = {}});
  return cudaSuccess;
}

/// The ticket of an event that the host may ask about.
cudaError_t ticket_of(const CUevent_st& event, TicketPtr& ticket) {
  if (const cudaError_t error = unsafe_in_capture(); error != cudaSuccess) return error;
  const std::lock_guard lock(capture_mutex());
  if (event.capture) return cudaErrorCapturedEvent;
  ticket = event.ticket;
  return cudaSuccess;
}

}  // namespace
}  // namespace rehearsal

using namespace rehearsal;

extern "C" {
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&] {
    *event = new CUevent_st{.device = current_device(), .timed = (flags & cudaEventDisableTiming) == 0};
    ++live_events;
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return remember(cudaErrorInvalidResourceHandle);
  delete event;
  --live_events;
  return remember(error_of(current_device()));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  return call("cudaEventRecord", [&] {
    Stream* stream = stream_of(handle);
    return stream == nullptr || event == nullptr ? cudaErrorInvalidResourceHandle : record(*event, *stream);
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags) {
  return call("cudaStreamWaitEvent", [&] {
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    return flags != cudaEventWaitDefault ? cudaErrorNotSupported : wait(any_stream(handle), *event);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call("cudaEventQuery", [&] {
    TicketPtr ticket;
    if (const cudaError_t error = ticket_of(*event, ticket); error != cudaSuccess) return error;
    return !ticket || ticket->reached() ? error_of(event->device) : cudaErrorNotReady;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", [&] {
    TicketPtr ticket;
    if (const cudaError_t error = ticket_of(*event, ticket); error != cudaSuccess) return error;
    if (ticket) ticket->wait();
    return error_of(event->device);
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call("cudaEventElapsedTime", [&] {
    TicketPtr from, to;
    if (const cudaError_t error = ticket_of(*start, from); error != cudaSuccess) return error;
    if (const cudaError_t error = ticket_of(*end, to); error != cudaSuccess) return error;
    if (!from || !to || !start->timed || !end->timed) return cudaErrorInvalidResourceHandle;
    if (!from->reached() || !to->reached()) return cudaErrorNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(to->time() - from->time()).count();
    return cudaSuccess;
  });
}
}
