#include "sim/cost/gpu_gemm.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.hpp"

namespace foreshard::sim::cost {
namespace {

constexpr std::array<std::array<std::int64_t, 2>, 10> tiles{
    {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}, {64, 256}, {256, 64}, {64, 32}, {32, 64}}};
constexpr std::array<std::int64_t, 4> splits{1, 2, 4, 8};
constexpr std::int64_t least_depth_of_split = 256;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
double real(std::int64_t value) { return static_cast<double>(value); }

double peak_of(const GpuRates& gpu, Math math) {
  if (math == Math::half) return gpu.half_flops;
  return math == Math::tf32 && gpu.tf32_flops > 0 ? gpu.tf32_flops : gpu.f32_flops;
}

double part_of(const GpuProfile::Gemm& gemm, Math math) {
  if (math == Math::half) return 1;
  return math == Math::tf32 ? gemm.tf32_part.value : gemm.f32_part.value;
}

double sum_of_parts_s(const GpuProfile::Gemm& gemm, const Product& p, std::int64_t split) {
  if (split == 1) return 0;
  const double moved = real(split + 1) * 4 * real(p.batch) * real(p.m) * real(p.n);
  return gemm.split_start_s.value + moved / gemm.split_bytes_per_s.value;
}

double memory_seconds(const GpuProfile& profile, const GpuRates& gpu, const Product& p) {
  const double elements = real(p.m) * real(p.k) + real(p.k) * real(p.n) + real(p.m) * real(p.n);
  return real(p.element_bytes) * real(p.batch) * elements / (profile.hbm_part.value * gpu.hbm_bytes_per_s);
}

double tiling_seconds(const GpuProfile::Gemm& gemm, const Product& p, const Tiling& tiling, double sm_flops,
                      std::int64_t sms) {
  const double area = real(tiling.tile_m * tiling.tile_n);
  const double rate = sm_flops * area / (area + gemm.tile_half_area.value);
  const double depth = real(divide_up(p.k, tiling.split)) + gemm.fill_depth.value;
  return real(waves(block_count(p, tiling), sms)) * 2 * area * depth / rate + sum_of_parts_s(gemm, p, tiling.split);
}

}  // namespace

std::int64_t waves(std::int64_t blocks, std::int64_t sms) { return divide_up(blocks, sms); }

std::int64_t block_count(const Product& product, const Tiling& tiling) {
  return product.batch * divide_up(product.m, tiling.tile_m) * divide_up(product.n, tiling.tile_n) * tiling.split;
}

double gemm_flops_per_s(const GpuProfile& profile, const GpuRates& gpu, Math math, Running running) {
  const double sustained = running == Running::in_step ? profile.gemm.sustained_part.of(gpu.arch).value : 1;
  return peak_of(gpu, math) * profile.gemm.rate.of(gpu.arch).value * part_of(profile.gemm, math) * sustained;
}

GemmTime gemm_time(const GpuProfile& profile, const GpuRates& gpu, const Product& product, Running running, int sms) {
  FORESHARD_EXPECT(product.m > 0 && product.n > 0 && product.k > 0, "a matrix product has extents");
  const double sm_flops = gemm_flops_per_s(profile, gpu, product.math, running) / gpu.sms;
  GemmTime best{.seconds = std::numeric_limits<double>::infinity()};
  for (const auto& [tile_m, tile_n] : tiles)
    for (const std::int64_t split : splits) {
      if (split > 1 && product.k < least_depth_of_split * split) continue;
      const Tiling tiling{tile_m, tile_n, split};
      const double seconds = tiling_seconds(profile.gemm, product, tiling, sm_flops, sms > 0 ? sms : gpu.sms);
      if (seconds < best.seconds) best = {seconds, tiling, block_count(product, tiling)};
    }
  best.memory_s = memory_seconds(profile, gpu, product);
  best.seconds = start_seconds(profile, running, profile.gemm.start_s) + std::max(best.seconds, best.memory_s);
  return best;
}

}  // namespace foreshard::sim::cost
