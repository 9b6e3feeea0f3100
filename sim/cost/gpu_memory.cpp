#include "sim/cost/gpu_memory.hpp"

#include <algorithm>

namespace foreshard::sim::cost {

double memory_bound_seconds(const GpuProfile& profile, const GpuRates& gpu, double bytes, Running running) {
  const double start = running == Running::isolated ? profile.gemm.start_s.value : profile.memory_start_s.value;
  const double fits = bytes > 0 ? std::min(1.0, gpu.l2_bytes / bytes) : 1;
  const double in_l2 = fits * fits;
  const double slow = bytes / (profile.hbm_part.value * gpu.hbm_bytes_per_s);
  return std::max(start, slow * (1 - in_l2 + in_l2 / profile.l2_speedup.value));
}

double update_bytes(double elements, int moments, DType parameter) {
  return elements * static_cast<double>(4 * (1 + 2 * moments) + 2 * size_bytes(parameter));
}

}  // namespace foreshard::sim::cost
