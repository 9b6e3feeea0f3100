#include "comm/stream.hpp"

#include <algorithm>

namespace foreshard::comm {

namespace {

void stream(std::byte* to, const std::byte* from, std::size_t size_bytes) {
  const std::size_t head = std::min(bytes_to_next_line(to), size_bytes);
  const std::size_t tail = head + (size_bytes - head) / line_bytes * line_bytes;
  std::memcpy(to, from, head);
  for (std::size_t i = head; i < tail; i += line_bytes) put_line<true>(to + i, from + i);
  std::memcpy(to + tail, from + tail, size_bytes - tail);
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
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace foreshard::comm
