#pragma once
#include <cstddef>
#include <span>

namespace rehearsal {

/// Bytes that are not a number as f64, f32, bf16 and f16, nor a small integer.
void poison(void* at, std::size_t bytes);

/// The static shared memory of a kernel's library on this thread: all its thread-local variables, if it is not the
/// program itself (which has others too).
std::span<char> static_shared_memory(const void* kernel);

/// Dynamic shared memory of this thread: `bytes` (rounded up to 16), then memory that faults.
std::span<char> dynamic_shared_memory_of(std::size_t bytes);

}  // namespace rehearsal
