#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

namespace foreshard::sim::allocator {

using Bytes = std::int64_t;
inline constexpr Bytes mib = Bytes{1} << 20, gib = Bytes{1} << 30;

/// What PYTORCH_CUDA_ALLOC_CONF (PYTORCH_ALLOC_CONF) changes in PyTorch's CUDA caching allocator, and the fraction that
/// `torch.cuda.set_per_process_memory_fraction` sets. Defaults are PyTorch's.
struct Settings {
  static constexpr Bytes unlimited = std::numeric_limits<Bytes>::max();

  Bytes max_split_bytes = unlimited;          ///< blocks of this size and more are not split, nor used for less
  Bytes max_unsplit_excess_bytes = 20 * mib;  ///< what an unsplit block may be larger than its request (exclusive)
  Bytes large_segment_bytes = 20 * mib;       ///< of requests between 1 and 10 MiB; pages of large expandable segments
  bool expandable_segments = false;
  double garbage_collection_threshold = 0;  ///< of the allowed memory; 0: off; works only below a memory limit
  double memory_fraction = 0;               ///< of the device's memory that reserved bytes may take; 0, 1: no limit
  std::array<int, 16> divisions{};          ///< of the steps between powers of two, from 1 MiB on; 0, 1: none

  bool limits_memory() const { return memory_fraction > 0 && memory_fraction < 1; }
  bool collects_garbage() const { return limits_memory() && garbage_collection_threshold > 0; }
};

/// The settings that the variable's text gives: "max_split_size_mb:128,expandable_segments:True". Known are
/// max_split_size_mb, max_non_split_rounding_mb, large_segment_size_mb, expandable_segments,
/// garbage_collection_threshold, per_process_memory_fraction, roundup_power2_divisions (a number, or
/// [256:1,512:2,>:4] by MiB), backend:native; options that move no memory of the device are read and dropped.
/// Throws InputError (usage) with key, value and what was expected.
/// Source: pytorch/pytorch c10/core/AllocatorConfig.cpp, c10/cuda/CUDAAllocatorConfig.cpp.
Settings parse_settings(std::string_view text);

}  // namespace foreshard::sim::allocator
