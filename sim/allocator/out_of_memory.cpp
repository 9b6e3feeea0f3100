#include "sim/allocator/out_of_memory.hpp"

#include <fmt/format.h>

#include "base/units.hpp"

namespace foreshard::sim::allocator {

std::string OutOfMemory::text() const {
  std::string text = fmt::format(
      "out of memory: {} asked on stream {} (segment {}), {} of {} free on the device, {} outside the allocator\n"
      "  allocated {}, active {}, reserved {}; cached {} in large blocks (largest {}), {} in small ones\n",
      bytes_text(requested), stream, bytes_text(segment), bytes_text(device_free), bytes_text(device),
      bytes_text(outside), bytes_text(allocated), bytes_text(active), bytes_text(reserved), bytes_text(large.cached),
      bytes_text(large.largest), bytes_text(small.cached));
  if (allowed > 0) text += fmt::format("  the memory fraction allows {}\n", bytes_text(allowed));
  if (is_fragmentation()) text += "  it is fragmentation: free bytes would do, were they together\n";
  return text;
}

}  // namespace foreshard::sim::allocator
