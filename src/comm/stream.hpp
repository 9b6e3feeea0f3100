#pragma once
#include <cstddef>

namespace foreshard::comm {

/// Copies; with `past_cache` by stores that do not first read the destination's lines and do not keep them in the
/// cache. Such stores become visible to others only with `finish_streams`.
void put(void* to, const void* from, std::size_t size_bytes, bool past_cache);

/// Orders the stores past the cache of this thread before its later stores.
void finish_streams();

/// A copy of any size, past the cache where it is too large to stay there. Includes finish_streams.
void copy(void* to, const void* from, std::size_t size_bytes);

/// Whether a destination of this size is too large to stay in the caches: storing past them then saves the read of each
/// line. Measured on 2 cores with 1 MiB L2 each and 32 MiB L3 (tests/bench/comm_bench.cpp).
constexpr bool too_large_to_cache(std::size_t size_bytes) { return size_bytes >= std::size_t{4} << 20; }

}  // namespace foreshard::comm
