#pragma once
#include <cmath>

#include "sim/allocator/settings.hpp"

namespace foreshard::sim::allocator {

using Nanoseconds = std::int64_t;  ///< virtual time

/// Host time of the driver's calls of a process alone. All assumed: the order of magnitude of recent data-centre
/// devices. In a job of several ranks giving back costs far more (`sim/runtimes/cached_memory.hpp`).
struct DriverCost {
  Nanoseconds malloc_ns = 100'000, malloc_ns_per_gib = 500'000;  ///< cudaMalloc
  Nanoseconds free_ns = 100'000, free_ns_per_gib = 500'000;      ///< cudaFree, the device being idle
  Nanoseconds map_ns = 40'000, map_page_ns = 30'000;             ///< cuMemSetAccess; cuMemCreate and cuMemMap
  Nanoseconds unmap_page_ns = 60'000;                            ///< cuMemUnmap and cuMemRelease

  Nanoseconds of_malloc(Bytes bytes) const { return malloc_ns + scaled(malloc_ns_per_gib, bytes); }
  Nanoseconds of_free(Bytes bytes) const { return free_ns + scaled(free_ns_per_gib, bytes); }
  Nanoseconds of_map(Bytes pages) const { return map_ns + pages * map_page_ns; }
  Nanoseconds of_unmap(Bytes pages) const { return pages * unmap_page_ns; }

 private:
  static Nanoseconds scaled(Nanoseconds per_gib, Bytes bytes) {
    return std::llround(static_cast<double>(per_gib) * static_cast<double>(bytes) / static_cast<double>(gib));
  }
};

}  // namespace foreshard::sim::allocator
