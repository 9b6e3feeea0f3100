#include "rehearsal/runtime/capture.hpp"

#include <algorithm>

#include "rehearsal/runtime/state.hpp"
#include "rehearsal/runtime/stream.hpp"

namespace rehearsal {
namespace {

std::vector<Capture*>& under_way() {
  static auto* captures = new std::vector<Capture*>;
  return *captures;
}

}  // namespace

std::mutex& capture_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

Capture::Capture(Stream& origin, cudaStreamCaptureMode mode) : origin_(&origin), mode_(mode) {
  under_way().push_back(this);
}

void Capture::join(Stream& stream) {
  stream.capture = shared_from_this();
  stream.lane = static_cast<int>(streams_.size());
  streams_.push_back(&stream);
  recorded_.lanes.push_back({stream.priority(), {}});
  known_.emplace_back();
}

cudaError_t Capture::add_run(Stream& stream, std::function<void()> run) {
  if (!valid_) return cudaErrorStreamCaptureInvalidated;
  recorded_.lanes[stream.lane].items.push_back({.run = std::move(run)});
  Known& known = known_[stream.lane];
  known.resize(streams_.size());
  ++known[stream.lane];
  return cudaSuccess;
}

int Capture::add_point(Stream& stream, Known& known) {
  known = known_[stream.lane];
  recorded_.lanes[stream.lane].items.push_back({.run = {}, .wait = -1, .reach = recorded_.points});
  return recorded_.points++;
}

cudaError_t Capture::add_wait(Stream& stream, int point, const Known& known) {
  if (!valid_) return cudaErrorStreamCaptureInvalidated;
  recorded_.lanes[stream.lane].items.push_back({.run = {}, .wait = point, .reach = -1});
  learn(stream.lane, known);
  return cudaSuccess;
}

void Capture::learn(std::size_t lane, const Known& known) {
  Known& mine = known_[lane];
  mine.resize(std::max(mine.size(), known.size()));
  for (std::size_t other = 0; other < known.size(); ++other) mine[other] = std::max(mine[other], known[other]);
}

cudaError_t Capture::invalidate(cudaError_t error) {
  valid_ = false;
  return error;
}

cudaError_t Capture::end(Recorded& recorded) {
  std::erase(under_way(), this);
  ended_ = true;
  Known& known = known_[origin_->lane];
  known.resize(streams_.size());
  bool joined = true;
  for (std::size_t lane = 0; lane < streams_.size(); ++lane) {
    known_[lane].resize(streams_.size());
    joined = joined && known[lane] == known_[lane][lane];
  }
  recorded = std::move(recorded_);
  for (Stream* stream : streams_) stream->capture.reset();
  if (!valid_) return cudaErrorStreamCaptureInvalidated;
  return joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}

bool Capture::forbids_unsafe_calls() const {
  return mode_ == cudaStreamCaptureModeGlobal ||
         (mode_ == cudaStreamCaptureModeThreadLocal && thread_ == std::this_thread::get_id());
}

cudaError_t forbidden_in_capture(Stream& stream) {
  const std::lock_guard lock(capture_mutex());
  return stream.capture ? stream.capture->invalidate(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}

cudaError_t unsafe_in_capture() {
  const std::lock_guard lock(capture_mutex());
  cudaError_t error = cudaSuccess;
  for (Capture* capture : under_way())
    if (capture->forbids_unsafe_calls()) error = capture->invalidate(cudaErrorStreamCaptureUnsupported);
  return error;
}

}  // namespace rehearsal

using namespace rehearsal;

extern "C" {
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&] {
    if (stream == nullptr) return cudaErrorStreamCaptureUnsupported;
    if (stream_of(stream) == nullptr) return cudaErrorInvalidResourceHandle;
    const std::lock_guard lock(capture_mutex());
    if (stream->capture) return cudaErrorIllegalState;
    std::make_shared<Capture>(*stream, mode)->join(*stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", [&] {
    const std::lock_guard lock(capture_mutex());
    *status = stream == nullptr || !stream->capture ? cudaStreamCaptureStatusNone
              : stream->capture->valid()            ? cudaStreamCaptureStatusActive
                                                    : cudaStreamCaptureStatusInvalidated;
    return cudaSuccess;
  });
}
}
