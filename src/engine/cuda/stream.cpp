#include "engine/cuda/stream.hpp"

#include "kernels/cuda/check.hpp"

namespace foreshard::engine::cuda {

using kernels::cuda::check;

Event::Event(Kind kind) {
  check(cudaEventCreateWithFlags(&event_, kind == Kind::time ? cudaEventDefault : cudaEventDisableTiming),
        "cudaEventCreateWithFlags");
}

Event::~Event() {
  if (event_) cudaEventDestroy(event_);
}

double elapsed_ns(const Event& from, const Event& to) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, from.get(), to.get()), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e6;
}

Stream::Stream(Priority priority) {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority == Priority::high ? greatest : least),
        "cudaStreamCreateWithPriority");
}

Stream::~Stream() {
  if (stream_) cudaStreamDestroy(stream_);
}

void Stream::record(const Event& event) const { check(cudaEventRecord(event.get(), stream_), "cudaEventRecord"); }
void Stream::wait(const Event& event) const {
  check(cudaStreamWaitEvent(stream_, event.get(), 0), "cudaStreamWaitEvent");
}

bool Stream::idle() const {
  const cudaError_t state = cudaStreamQuery(stream_);
  if (state == cudaErrorNotReady) return false;
  check(state, "cudaStreamQuery");
  return true;
}

}  // namespace foreshard::engine::cuda
