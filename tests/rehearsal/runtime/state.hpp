#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "cuda_runtime_api.h"
#include "rehearsal/control.hpp"

/// What all parts of the runtime share.
namespace rehearsal {

extern std::atomic<int> live_streams, live_events, live_graphs, live_communicators;

int devices();
int current_device();
void set_current_device(int);

/// Writes it to the standard error stream and keeps it for `reports`.
void report(const std::string&);

/// The error that `fail_call` asked for at this call, or 0.
int injected(const char* name);
/// Calls what `watch_work` asked for; `work` says what it is.
void watched(const std::function<std::string()>& work);
void sleep_at_random(std::uint64_t stream);
std::uint64_t next_seed();

/// A device that met an error in its work returns it from all later calls.
cudaError_t error_of(int device);
void fail_device(int device, cudaError_t);

/// Keeps the error for cudaGetLastError of this thread.
cudaError_t remember(cudaError_t);

/// The body of a function of the runtime: nothing is done if an error was injected or the device has failed.
template <class Body>
cudaError_t call(const char* name, Body body) {
  if (devices() == 0) return remember(cudaErrorInsufficientDriver);
  if (const int error = injected(name); error != 0) return remember(static_cast<cudaError_t>(error));
  if (const cudaError_t error = error_of(current_device()); error != cudaSuccess) return remember(error);
  return remember(body());
}

}  // namespace rehearsal
