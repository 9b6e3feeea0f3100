#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "vector_types.h"

namespace rehearsal {

/// A kernel with its arguments, ready to run as any of its threads.
struct Kernel {
  const void* address = nullptr;
  std::function<void()> call;
  dim3 grid, block;
  std::size_t shared_bytes = 0;  ///< dynamic
};

/// Runs all blocks, one after another on the calling thread, in an order that `seed` chooses; so it does for the
/// threads of a block. Returns what went wrong first, empty if nothing did; then the rest has not run.
std::string run(const Kernel&, std::uint64_t seed);

/// The symbol of a function, or where in which file it is.
std::string name_of(const void* function);

/// "kernel k, block (1, 0, 0), thread (5, 0, 0)": what the calling thread works on; empty if that is no kernel.
std::string place();

}  // namespace rehearsal
