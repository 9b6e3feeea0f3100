#pragma once
#include <array>
#include <string>

#include "sim/allocator/settings.hpp"

namespace foreshard::sim::allocator {

/// What a pool holds without anybody using it.
struct PoolCache {
  Bytes cached = 0;   ///< free blocks, of all streams
  Bytes largest = 0;  ///< the largest of them
};

/// A request that nothing could serve: no cached block, nor the driver, after all that could be released was.
struct OutOfMemory {
  Bytes requested = 0, rounded = 0;
  Bytes segment = 0;  ///< what the driver was asked for
  int stream = 0;
  Bytes device = 0, device_free = 0, outside = 0;
  Bytes allowed = 0;  ///< by the memory fraction; 0: no limit
  Bytes allocated = 0, active = 0, reserved = 0;
  PoolCache small, large;
  Bytes largest_of_stream = 0;  ///< free block of the request's stream and pool

  /// Free bytes inside segments that are partly in use: enough for the request, were they together.
  bool is_fragmentation() const { return rounded <= small.cached + large.cached + device_free; }
  std::string text() const;
};

}  // namespace foreshard::sim::allocator
