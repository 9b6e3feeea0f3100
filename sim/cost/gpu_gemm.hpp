#pragma once
#include <cstdint>

#include "sim/cost/gpu_profile.hpp"

namespace foreshard::sim::cost {

/// `batch` products [m, k]·[k, n] of elements of `element_bytes`.
struct Product {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  Math math = Math::half;
  std::int64_t element_bytes = 2;
};

/// How a product is cut: into blocks of tile_m × tile_n results, `split` blocks for the same results, each of a part of
/// k.
struct Tiling {
  std::int64_t tile_m = 0, tile_n = 0, split = 1;
};

struct GemmTime {
  double seconds = 0;
  Tiling tiling;
  std::int64_t blocks = 0;  ///< each on an SM of its own while it runs
  double memory_s = 0;      ///< its operands and results at the rate of HBM
};

/// Times that `blocks` fill `sms`: ⌈blocks / sms⌉.
std::int64_t waves(std::int64_t blocks, std::int64_t sms);
/// batch·⌈m / tile_m⌉·⌈n / tile_n⌉·split.
std::int64_t block_count(const Product& product, const Tiling& tiling);

/// Time of a matrix product when `sms` of the device's SMs are free for it (0 = all of them).
///
///   start + max(waves · 2·tile_m·tile_n·(⌈k / split⌉ + fill) / rate_of_tile, bytes / (part · HBM))
///
/// in the fastest of the usual tilings; rate_of_tile = rate · peak / SMs · area / (area + half_area), as small tiles
/// read their operands more often. A split product besides adds its parts. Tile and wave quantisation as NVIDIA,
/// "Matrix Multiplication Background User's Guide", states them. In a step the rate is what the power limit sustains.
/// Constants and their sources: sim/profiles/gpu_kernels.json. Mean error on 63 products on H100: 2.9 % (bf16).
GemmTime gemm_time(const GpuProfile& profile, const GpuRates& gpu, const Product& product, Running running,
                   int sms = 0);

/// FLOP/s that large products reach: the peak of that math times the rate.
double gemm_flops_per_s(const GpuProfile& profile, const GpuRates& gpu, Math math, Running running);

}  // namespace foreshard::sim::cost
