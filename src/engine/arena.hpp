#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plan/op.hpp"

namespace foreshard::engine {

/// The one block of memory of a space that a rank's plan works in. It knows what was really used of it.
class Arena {
 public:
  /// Does not own `memory`; page-aligned.
  explicit Arena(std::span<std::byte> memory) : memory_(memory) {}

  /// The bytes [offset, offset + size). Throws ContractError outside the arena. Any thread.
  std::byte* at(std::int64_t offset_bytes, std::int64_t size_bytes) {
    const std::int64_t end = offset_bytes + size_bytes;
    if (offset_bytes < 0 || end > static_cast<std::int64_t>(memory_.size())) outside(offset_bytes, size_bytes);
    if (end > high_water_bytes_.load(std::memory_order_relaxed)) raise_high_water(end);
    return memory_.data() + offset_bytes;
  }

  std::int64_t size_bytes() const { return static_cast<std::int64_t>(memory_.size()); }

  /// The end of the highest bytes that were asked for.
  std::int64_t high_water_bytes() const { return high_water_bytes_; }

  /// Whole pages of the arena that are in memory (mincore), in bytes.
  std::int64_t touched_bytes() const;

 private:
  [[noreturn]] void outside(std::int64_t offset_bytes, std::int64_t size_bytes) const;
  void raise_high_water(std::int64_t end);

  std::span<std::byte> memory_;
  std::atomic<std::int64_t> high_water_bytes_{0};
};

/// A rank's arenas, one a space.
struct Arenas {
  Arena device, host;
  Arena& of(plan::Space space) { return space == plan::Space::device ? device : host; }
  const Arena& of(plan::Space space) const { return space == plan::Space::device ? device : host; }
};

}  // namespace foreshard::engine
