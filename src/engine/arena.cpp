#include "engine/arena.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.hpp"

namespace foreshard::engine {

std::int64_t Arena::touched_bytes() const {
  if (memory_.empty()) return 0;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((memory_.size() + page - 1) / page);
  if (mincore(memory_.data(), memory_.size(), pages.data()) != 0)
    throw LibraryError(fmt::format("mincore on an arena of {} bytes failed: {}", memory_.size(), std::strerror(errno)));
  const auto resident = std::ranges::count_if(pages, [](unsigned char state) { return (state & 1U) != 0; });
  return resident * static_cast<std::int64_t>(page);
}

void Arena::outside(std::int64_t offset_bytes, std::int64_t size_bytes) const {
  throw ContractError(
      fmt::format("bytes {}+{} are outside the arena of {} bytes", offset_bytes, size_bytes, memory_.size()));
}

void Arena::raise_high_water(std::int64_t end) {
  std::int64_t seen = high_water_bytes_.load();
  while (seen < end && !high_water_bytes_.compare_exchange_weak(seen, end)) {
  }
}

}  // namespace foreshard::engine
