#include "rehearsal/runtime/stream.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "rehearsal/runtime/capture.hpp"
#include "rehearsal/runtime/memory.hpp"
#include "rehearsal/runtime/state.hpp"

namespace rehearsal {
namespace {

std::atomic<std::uint64_t> streams_made;

struct Registry {
  std::mutex mutex;
  std::vector<Stream*> streams;
  std::array<std::unique_ptr<Stream>, most_devices> defaults;
};

Registry& registry() {
  static auto* all = new Registry;  // default streams are never destroyed
  return *all;
}

}  // namespace

Stream::Stream(int device, int priority)
    : device_(device), priority_(priority), number_(++streams_made), thread_([this] { run(); }) {
  const std::lock_guard lock(registry().mutex);
  registry().streams.push_back(this);
}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  const std::lock_guard lock(registry().mutex);
  std::erase(registry().streams, this);
}

void Stream::add(Work work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

TicketPtr Stream::mark() {
  auto ticket = std::make_shared<Ticket>();
  add({.run = {}, .wait = {}, .reach = ticket});
  return ticket;
}

bool Stream::idle() const {
  const std::lock_guard lock(mutex_);
  return work_.empty() && !busy_;
}

void Stream::run() {
  set_current_device(device_);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !work_.empty(); });
    if (work_.empty()) return;
    {
      Work work = std::move(work_.front());
      work_.pop_front();
      busy_ = true;
      lock.unlock();
      carry_out(work);
    }
    lock.lock();
    busy_ = false;
  }
}

void Stream::carry_out(Work& work) {
  if (work.wait) work.wait->wait();
  if (work.run && error_of(device_) == cudaSuccess) {
    sleep_at_random(number_);
    work.run();
  }
  if (work.reach) work.reach->reach();
}

Stream& default_stream(int device) {
  Registry& all = registry();
  std::unique_lock lock(all.mutex);
  auto& stream = all.defaults[device];
  if (!stream) {
    lock.unlock();
    auto made = std::make_unique<Stream>(device);
    lock.lock();
    if (!stream) stream = std::move(made);
  }
  return *stream;
}

Stream& any_stream(cudaStream_t handle) { return handle == nullptr ? default_stream(current_device()) : *handle; }

Stream* stream_of(cudaStream_t handle) {
  Stream& stream = any_stream(handle);
  return stream.device() == current_device() ? &stream : nullptr;
}

void synchronise_device(int device) {
  std::vector<TicketPtr> tickets;
  {
    const std::lock_guard lock(registry().mutex);
    for (Stream* stream : registry().streams)
      if (stream->device() == device) tickets.push_back(stream->mark());
  }
  for (const auto& ticket : tickets) ticket->wait();
}

cudaError_t queue(cudaStream_t handle, std::function<void()> run) {
  Stream* stream = stream_of(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  const std::lock_guard lock(capture_mutex());
  if (stream->capture) return stream->capture->add_run(*stream, std::move(run));
  stream->add({.run = std::move(run), .wait = {}, .reach = {}});
  return cudaSuccess;
}

}  // namespace rehearsal

using namespace rehearsal;

extern "C" {
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call("cudaDeviceGetStreamPriorityRange", [&] {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return call("cudaStreamCreateWithPriority", [&] {
    if (flags != cudaStreamNonBlocking) {
      report("cudaStreamCreate: only non-blocking streams are rehearsed");
      return cudaErrorNotSupported;
    }
    *stream = new CUstream_st(current_device(), std::clamp(priority, -5, 0));
    ++live_streams;
    return cudaSuccess;
  });
}

/// Unlike CUDA waits for the stream's work. Also after an error, since it must be possible to clean up.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr) return remember(cudaErrorInvalidResourceHandle);
  {
    const std::lock_guard lock(capture_mutex());
    if (stream->capture) return remember(stream->capture->invalidate(cudaErrorStreamCaptureUnsupported));
  }
  delete stream;
  --live_streams;
  return remember(error_of(current_device()));
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call("cudaStreamSynchronize", [&] {
    Stream& stream = any_stream(handle);
    if (const cudaError_t error = forbidden_in_capture(stream); error != cudaSuccess) return error;
    stream.synchronise();
    return error_of(stream.device());
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return call("cudaStreamQuery", [&] {
    Stream& stream = any_stream(handle);
    if (const cudaError_t error = forbidden_in_capture(stream); error != cudaSuccess) return error;
    return stream.idle() ? error_of(stream.device()) : cudaErrorNotReady;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [] {
    if (const cudaError_t error = unsafe_in_capture(); error != cudaSuccess) return error;
    synchronise_device(current_device());
    return error_of(current_device());
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return call("cudaLaunchHostFunc", [&] { return queue(stream, [=] { function(data); }); });
}
}
