#include "rehearsal/runtime/launch.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>

#include "rehearsal/emulation/kernel.hpp"
#include "rehearsal/runtime/memory.hpp"
#include "rehearsal/runtime/state.hpp"
#include "rehearsal/runtime/stream.hpp"

namespace rehearsal {
namespace {

constexpr std::size_t common_shared_bytes = 48 * 1024, most_shared_bytes = 227 * 1024;

/// Dynamic shared memory that kernels were allowed to have.
class SharedLimits {
 public:
  void set(const void* kernel, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_[kernel] = bytes;
  }
  std::size_t of(const void* kernel) {
    const std::lock_guard lock(mutex_);
    const auto found = bytes_.find(kernel);
    return found == bytes_.end() ? common_shared_bytes : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<const void*, std::size_t> bytes_;
};

SharedLimits& shared_limits() {
  static auto* limits = new SharedLimits;
  return *limits;
}

cudaError_t shape_error(const cudaLaunchConfig_t& config, const void* kernel) {
  const dim3 grid = config.gridDim, block = config.blockDim;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const bool fits = threads >= 1 && threads <= 1024 && block.z <= 64 && grid.x >= 1 && grid.x <= 0x7FFFFFFFU &&
                    grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 && grid.z <= 65535;
  if (!fits) return cudaErrorInvalidConfiguration;
  return config.dynamicSmemBytes <= shared_limits().of(kernel) ? cudaSuccess : cudaErrorInvalidValue;
}

std::string shape_of(const cudaLaunchConfig_t& config, const void* kernel) {
  const dim3 grid = config.gridDim, block = config.blockDim;
  return fmt::format("kernel {}: no launch of {}x{}x{} blocks of {}x{}x{} threads with {} bytes of shared memory",
                     name_of(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z, config.dynamicSmemBytes);
}

/// A pointer must be null, or lead to the device's memory or to pinned memory; where to is only known when it is used.
std::string pointer_problem(const void* pointer, int device) {
  return pointer == nullptr ? std::string() : Memory::instance().problem(pointer, 1, device);
}

/// Structures may hold pointers: each word that is the address of an allocation is taken for one.
void replace_addresses(const Argument& argument) {
  Memory& memory = Memory::instance();
  for (std::size_t at = 0; at + sizeof(void*) <= argument.bytes; at += sizeof(void*)) {
    void* word = nullptr;
    std::memcpy(&word, static_cast<char*>(argument.at) + at, sizeof word);
    if (!memory.is_device_address(word)) continue;
    word = Memory::real(word);
    std::memcpy(static_cast<char*>(argument.at) + at, &word, sizeof word);
  }
}

std::string replace_addresses(std::span<const Argument> arguments, int device) {
  std::string problems;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].is_pointer)
      if (const std::string problem = pointer_problem(*static_cast<void**>(arguments[i].at), device); !problem.empty())
        problems += fmt::format("; argument {}: {}", i, problem);
    replace_addresses(arguments[i]);
  }
  return problems;
}

/// Finding a name takes reading the library's symbols.
std::string known_name_of(const void* kernel) {
  static auto* names = new std::map<const void*, std::string>;
  static auto* mutex = new std::mutex;
  const std::lock_guard lock(*mutex);
  const auto found = names->find(kernel);
  return found != names->end() ? found->second : names->emplace(kernel, name_of(kernel)).first->second;
}

void carry_out(const Kernel& kernel, const std::string& problems, int device) {
  watched([&] { return known_name_of(kernel.address); });
  if (const int error = injected("kernel"); error != 0) return fail_device(device, static_cast<cudaError_t>(error));
  if (!problems.empty()) {
    report("kernel " + name_of(kernel.address) + problems);
    return fail_device(device, cudaErrorIllegalAddress);
  }
  const std::string fault = run(kernel, next_seed());
  if (fault.empty()) return;
  report(fault);
  fail_device(device, cudaErrorLaunchFailure);
}

}  // namespace

cudaError_t launch(const cudaLaunchConfig_t& config, const void* address, std::span<const Argument> arguments,
                   std::function<void()> body) {
  return call("cudaLaunchKernelEx", [&] {
    if (const cudaError_t error = shape_error(config, address); error != cudaSuccess) {
      report(shape_of(config, address));
      return error;
    }
    const int device = current_device();
    std::string problems = replace_addresses(arguments, device);
    const Kernel kernel = {address, std::move(body), config.gridDim, config.blockDim, config.dynamicSmemBytes};
    return queue(config.stream, [kernel, problems, device] { carry_out(kernel, problems, device); });
  });
}

}  // namespace rehearsal

using namespace rehearsal;

extern "C" cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  return call("cudaFuncSetAttribute", [&] {
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaErrorNotSupported;
    if (value < 0 || static_cast<std::size_t>(value) > most_shared_bytes) return cudaErrorInvalidValue;
    shared_limits().set(kernel, static_cast<std::size_t>(value));
    return cudaSuccess;
  });
}
