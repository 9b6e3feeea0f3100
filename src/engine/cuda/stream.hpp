#pragma once
#include <cuda_runtime.h>

#include <utility>

namespace foreshard::engine::cuda {

/// A point in a stream's order.
class Event {
 public:
  enum class Kind { order, time };
  explicit Event(Kind kind = Kind::order);
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event();
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Time from one event to another, both done, in ns. A device's resolution is about half a microsecond.
double elapsed_ns(const Event& from, const Event& to);

/// An ordered queue of the current device.
class Stream {
 public:
  enum class Priority { normal, high };
  explicit Stream(Priority priority);
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;
  ~Stream();
  cudaStream_t get() const { return stream_; }

  void record(const Event& event) const;
  void wait(const Event& event) const;
  bool idle() const;  ///< throws LibraryError where something queued before has failed

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace foreshard::engine::cuda
