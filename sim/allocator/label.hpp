#pragma once
#include <array>
#include <string_view>

#include "sim/allocator/block.hpp"

namespace foreshard::sim::allocator {

/// What memory is for.
enum class MemoryClass : std::uint8_t {
  other,
  parameters,
  gradients,
  optimizer,
  activations,
  gathered,
  workspace,
  temporaries
};
inline constexpr std::array<std::string_view, 8> memory_class_names{
    "other", "parameters", "gradients", "optimizer", "activations", "gathered", "workspace", "temporaries"};
using BytesByClass = std::array<Bytes, memory_class_names.size()>;

inline constexpr int no_unit = -1;

/// A block's class and unit of sharding in one word; `Label::none` is other memory of no unit. unit ≥ -1, below 2^24.
constexpr Label label_of(MemoryClass kind, int unit = no_unit) {
  return Label{(std::uint32_t(kind) << 24) | std::uint32_t(unit + 1)};
}
constexpr MemoryClass class_of(Label label) { return MemoryClass(std::uint32_t(label) >> 24); }
constexpr int unit_of(Label label) { return int(std::uint32_t(label) & 0xFFFFFF) - 1; }

/// "activations of unit 3", "optimizer".
std::string text_of(Label label);

}  // namespace foreshard::sim::allocator
