#pragma once
#include "sim/allocator/settings.hpp"

namespace foreshard::sim::allocator {

/// Source of all sizes: pytorch/pytorch@001074d2 c10/cuda/CUDACachingAllocator.cpp.
inline constexpr Bytes block_unit = 512;          ///< every block is a multiple
inline constexpr Bytes small_limit = mib;         ///< rounded sizes up to this are in the small pool
inline constexpr Bytes small_segment = 2 * mib;   ///< of the small pool; pages of its expandable segments
inline constexpr Bytes large_request = 10 * mib;  ///< from here on a segment of its own size, else a large segment
inline constexpr Bytes segment_unit = 2 * mib;    ///< such segments are multiples

constexpr Bytes round_up(Bytes bytes, Bytes unit) { return (bytes + unit - 1) / unit * unit; }

/// The size of the block that a request of `bytes` > 0 gets: multiples of 512 B, or with d divisions for its interval
/// of sizes and more than 512·d bytes, the next of d equal steps between powers of two.
Bytes rounded_size(Bytes bytes, const Settings& settings);

inline bool is_small(Bytes rounded) { return rounded <= small_limit; }

/// What the driver is asked for when no cached block serves a rounded size.
Bytes segment_size(Bytes rounded, const Settings& settings);

}  // namespace foreshard::sim::allocator
