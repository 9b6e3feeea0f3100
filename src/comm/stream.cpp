#include "comm/stream.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace foreshard::comm {

namespace {

constexpr std::size_t line_bytes = 64;

#if defined(__x86_64__)
void stream_lines(std::byte* to, const std::byte* from, std::size_t lines) {
  for (std::size_t i = 0; i < lines * line_bytes; i += line_bytes) {
    const auto* source = reinterpret_cast<const __m128i*>(from + i);
    auto* target = reinterpret_cast<__m128i*>(to + i);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
}
#else
void stream_lines(std::byte* to, const std::byte* from, std::size_t lines) {
  std::memcpy(to, from, lines * line_bytes);
}
#endif

std::size_t bytes_to_next_line(const void* pointer) {
  return (line_bytes - reinterpret_cast<std::uintptr_t>(pointer) % line_bytes) % line_bytes;
}

void stream(std::byte* to, const std::byte* from, std::size_t size_bytes) {
  const std::size_t head = std::min(bytes_to_next_line(to), size_bytes);
  const std::size_t lines = (size_bytes - head) / line_bytes;
  const std::size_t tail_at = head + lines * line_bytes;
  std::memcpy(to, from, head);
  stream_lines(to + head, from + head, lines);
  std::memcpy(to + tail_at, from + tail_at, size_bytes - tail_at);
}

}  // namespace

void put(void* to, const void* from, std::size_t size_bytes, bool past_cache) {
  if (size_bytes == 0) return;
  if (!past_cache) {
    std::memcpy(to, from, size_bytes);
    return;
  }
  stream(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), size_bytes);
}

void finish_streams() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

void copy(void* to, const void* from, std::size_t size_bytes) {
  put(to, from, size_bytes, too_large_to_cache(size_bytes));
  finish_streams();
}

}  // namespace foreshard::comm
