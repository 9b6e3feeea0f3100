#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cuda_runtime_api.h"

/// What tests say to the rehearsed devices, and ask them.
namespace rehearsal {

/// Forgets errors, injected faults, delays and reports; call it while no stream has work.
/// `devices` of `bytes` memory each are visible from now on (0 devices: as without a driver).
void reset(int devices = 2, std::size_t bytes = std::size_t{1} << 30);

/// The n-th call (from 1, over all threads) of a function of the runtime, of cuBLASLt or of NCCL returns this error
/// and does nothing else. `name` is that of the function; of "kernel" the n-th one that runs fails on the device.
void fail_call(const std::string& name, int nth, int error);

/// Before each piece of work a stream sleeps for up to so long, chosen at random; 0 ends that.
void delay_streams(std::uint64_t seed, int most_microseconds);

/// Called by a stream before each of its kernels, with the kernel's name, and collectives, and may wait; empty: nothing
/// is. Not to be changed while streams have work.
void watch_work(std::function<void(int device, const std::string& work)> watch);

/// The order of blocks, and of threads in a block, follows from this.
void shuffle(std::uint64_t seed);

/// What devices found wrong, in order: kernels, wrong pointers, collectives that do not match.
std::vector<std::string> reports();

/// What exists now.
struct Live {
  int allocations = 0, streams = 0, events = 0, graphs = 0, communicators = 0;
};
Live live();

}  // namespace rehearsal
