#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

/// Stores past the cache: they do not first read the destination's lines and do not keep them. What they stored is
/// visible to others only after `finish_streams`. On processors without such stores these are plain copies.
namespace foreshard::comm {

inline constexpr std::size_t line_bytes = 64;

/// Copies `size_bytes`, the whole lines past the cache if so wished.
void put(void* to, const void* from, std::size_t size_bytes, bool past_cache);

/// Orders the stores past the cache of this thread before its later stores.
void finish_streams();

/// Bytes from `pointer` to the next begin of a line, 0 if it is one.
inline std::size_t bytes_to_next_line(const void* pointer) {
  return (line_bytes - reinterpret_cast<std::uintptr_t>(pointer) % line_bytes) % line_bytes;
}

/// Whether a destination of this size is too large to stay in the caches: storing past them then saves the read of each
/// line. Measured with 1 MiB L2 a core and 32 MiB L3: at 32 MiB a copy past the cache takes 0.6 of the time of memcpy,
/// below 4 MiB the same.
constexpr bool too_large_to_cache(std::int64_t size_bytes) { return size_bytes >= std::int64_t{4} << 20; }

/// Copies one line to the line at `to`.
template <bool past_cache>
inline void put_line(void* to, const void* from) {
#if defined(__AVX512F__)
  if constexpr (past_cache) return _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__SSE2__)
  if constexpr (past_cache) {
    for (int i = 0; i < 4; ++i)
      _mm_stream_si128(static_cast<__m128i*>(to) + i, _mm_loadu_si128(static_cast<const __m128i*>(from) + i));
    return;
  }
#endif
  std::memcpy(to, from, line_bytes);
}

}  // namespace foreshard::comm
