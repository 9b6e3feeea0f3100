#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernel_times.hpp"

namespace foreshard::gpu_bench {
namespace {

using kernels::cuda::Algorithm;

double copy_rate(Device& device) {
  constexpr std::int64_t bytes = std::int64_t{2} << 30;
  const engine::cuda::DeviceMemory from(bytes), to(bytes);
  const Timing timing = device.time([&] { device.kernels().copy(from.data(), to.data(), bytes); });
  return 2.0 * bytes / timing.median_s;
}

double matmul_rate(Device& device) {
  constexpr std::int64_t n = 8192;
  constexpr kernels::Matmul product{.m = n, .n = n, .k = n, .transpose_b = true};
  constexpr kernels::cuda::MatmulTypes types{.operands = DType::bf16, .result = DType::bf16};
  const Numbers a(n * n, DType::bf16), b(n * n, DType::bf16);
  Numbers c(n * n, DType::bf16);
  double best_s = 1;
  for (const Algorithm& algorithm : device.kernels().candidates(product, types)) {
    device.kernels().set_algorithm(product, types, algorithm);
    const Timing timing = device.time([&] { device.kernels().matmul(product, a, b, {}, c); }, 7);
    best_s = std::min(best_s, timing.median_s);
  }
  return 2.0 * n * n * n / best_s;
}

}  // namespace

nlohmann::json reference_rates(Device& device) {
  return {{"copy_bytes_per_s", copy_rate(device)}, {"matmul_flops_per_s", matmul_rate(device)}};
}

}  // namespace foreshard::gpu_bench
