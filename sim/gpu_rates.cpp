#include "sim/gpu_rates.hpp"

#include <algorithm>
#include <cmath>

namespace foreshard::sim {
cost::GpuRates rates_of(const Device& device) {
  return {.name = device.name,
          .arch = device.architecture,
          .half_flops = std::max(device.bf16_flops.value, device.fp16_flops.value),
          .tf32_flops = device.tf32_flops.value,
          .f32_flops = device.fp32_flops.value,
          .sms = device.multiprocessors,
          .hbm_bytes_per_s = device.memory_bytes_per_s.value,
          .l2_bytes = device.l2_bytes.value};
}

double pcie_bytes_per_s(const Device& device) {
  return 12e9 * std::exp2(device.pcie_generation - 3) * device.pcie_lanes / 16;
}

}  // namespace foreshard::sim
