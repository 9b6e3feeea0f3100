#include "sim/allocator/rounding.hpp"

#include <algorithm>
#include <bit>

namespace foreshard::sim::allocator {
namespace {

int divisions_at(Bytes bytes, const Settings& settings) {
  const int power = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes))) - 1;
  return settings.divisions[std::size_t(std::clamp(power - 20, 0, int(settings.divisions.size()) - 1))];
}

}  // namespace

Bytes rounded_size(Bytes bytes, const Settings& settings) {
  if (bytes < block_unit) return block_unit;
  const int divisions = divisions_at(bytes, settings);
  if (divisions <= 1 || bytes <= block_unit * divisions) return round_up(bytes, block_unit);
  return round_up(bytes, static_cast<Bytes>(std::bit_floor(static_cast<std::uint64_t>(bytes))) / divisions);
}

Bytes segment_size(Bytes rounded, const Settings& settings) {
  if (is_small(rounded)) return small_segment;
  return rounded < large_request ? settings.large_segment_bytes : round_up(rounded, segment_unit);
}

}  // namespace foreshard::sim::allocator
