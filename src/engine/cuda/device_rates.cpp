#include "engine/cuda/device_rates.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>

#include "base/clock.hpp"
#include "engine/cuda/graph.hpp"
#include "engine/cuda/memory.hpp"
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/check.hpp"

namespace foreshard::engine::cuda {
namespace {

using kernels::cuda::Algorithm;
using kernels::cuda::check;
using kernels::cuda::Kernels;

constexpr std::int64_t workspace_bytes = std::int64_t{64} << 20;
constexpr std::size_t most_algorithms = 8;
constexpr int kernels_of_a_graph = 100;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// One device's stream, kernels on it, and how long what they do takes.
class Bench {
 public:
  Bench(const CudaTrial& trial, const Stream& stream)
      : trial_(trial),
        stream_(stream),
        kernels_(kernels::cuda::make(
            {.stream = stream.get(), .workspace = workspace_.data(), .workspace_bytes = workspace_.size_bytes()})) {}

  double copy_bytes_per_s() const {
    const DeviceMemory from(trial_.copy_bytes), to(trial_.copy_bytes);
    return 2 * copied_per_s(from.data(), to.data());
  }
  double to_device_bytes_per_s() const {
    const DeviceMemory device(trial_.copy_bytes);
    const PinnedMemory host(trial_.copy_bytes);
    return copied_per_s(host.data(), device.data());
  }
  double to_host_bytes_per_s() const {
    const DeviceMemory device(trial_.copy_bytes);
    const PinnedMemory host(trial_.copy_bytes);
    return copied_per_s(device.data(), host.data());
  }

  /// By the fastest of the likely algorithms.
  double product_flops_per_s(DType dtype, std::int64_t side) const {
    const std::int64_t bytes = side * side * size_bytes(dtype);
    const DeviceMemory a = noise(bytes), b = noise(bytes), c(bytes);
    const kernels::Matmul product{.m = side, .n = side, .k = side};
    const kernels::cuda::MatmulTypes types{dtype, dtype};
    std::vector<Algorithm> algorithms = kernels_->candidates(product, types);
    algorithms.resize(std::min(algorithms.size(), most_algorithms));
    std::optional<double> least;
    for (const Algorithm& algorithm : algorithms) {
      kernels_->set_algorithm(product, types, algorithm);
      const double seconds = timed([&] {
        kernels_->matmul(product, {a.data(), dtype}, {b.data(), dtype}, {nullptr, dtype}, {c.data(), dtype});
      });
      least = std::min(least.value_or(seconds), seconds);
    }
    if (!least)
      throw LibraryError(fmt::format("cuBLASLt has no algorithm for a product of {} in {}", side, name_of(dtype)));
    const auto length = static_cast<double>(side);
    return 2 * length * length * length / *least;
  }

  double launch_s() const {
    return timed([&] { least_kernel(); });
  }
  double graph_kernel_s() const {
    const Graph one = graph_of(1), many = graph_of(1 + kernels_of_a_graph);
    const double more_s = timed([&] { many.launch(stream_); }) - timed([&] { one.launch(stream_); });
    return std::max(0.0, more_s / kernels_of_a_graph);
  }
  double graph_launch_s() const {
    const Graph graph = graph_of(1);
    std::vector<double> seconds;
    for (int i = 0; i <= trial_.repeats; ++i) {
      const std::int64_t start_ns = now_ns();
      graph.launch(stream_);
      check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
      if (i > 0) seconds.push_back(1e-9 * static_cast<double>(now_ns() - start_ns));
    }
    return median(seconds);
  }

 private:
  /// Median of runs that each begin on an idle device, the first apart.
  double timed(const std::function<void()>& queue) const {
    std::vector<double> seconds;
    for (int i = 0; i <= trial_.repeats; ++i) {
      stream_.record(begin_);
      queue();
      stream_.record(end_);
      check(cudaEventSynchronize(end_.get()), "cudaEventSynchronize");
      if (i > 0) seconds.push_back(std::max(1e-9, 1e-9 * elapsed_ns(begin_, end_)));
    }
    return median(seconds);
  }

  double copied_per_s(const void* from, void* to) const {
    return static_cast<double>(trial_.copy_bytes) / timed([&] { kernels_->copy(from, to, trial_.copy_bytes); });
  }

  /// Numbers of ±[0.5, 1) in bf16, and in f32: products of zeros need less power, so they would be too fast.
  static DeviceMemory noise(std::int64_t bytes) {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(bytes / 2));
    std::uint32_t state = 1;
    for (std::uint16_t& value : values) {
      state = state * 1664525 + 1013904223;
      value = static_cast<std::uint16_t>((state >> 16 & 0x807f) | 0x3f00);
    }
    DeviceMemory memory(bytes);
    check(cudaMemcpy(memory.data(), values.data(), static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice),
          "cudaMemcpy");
    return memory;
  }

  void least_kernel() const { kernels_->advance(as<kernels::cuda::Step>(step_)); }

  Graph graph_of(int count) const {
    const Stream* const streams[] = {&stream_};
    Capture capture(streams);
    for (int i = 0; i < count; ++i) least_kernel();
    return capture.end();
  }

  CudaTrial trial_;
  const Stream& stream_;
  DeviceMemory workspace_{workspace_bytes}, step_{sizeof(kernels::cuda::Step)};
  std::unique_ptr<Kernels> kernels_;
  Event begin_{Event::Kind::time}, end_{Event::Kind::time};
};

}  // namespace

CudaDevice measured_device(const Device& device, const CudaTrial& trial, const Stream& stream) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device.index), "cudaGetDeviceProperties");
  int visible = 0;
  check(cudaGetDeviceCount(&visible), "cudaGetDeviceCount");
  const Bench bench(trial, stream);
  return {.name = device.name,
          .architecture = fmt::format("sm_{}{}", properties.major, properties.minor),
          .multiprocessors = properties.multiProcessorCount,
          .visible = visible,
          .memory_bytes = device.memory_bytes,
          .copy_bytes_per_s = bench.copy_bytes_per_s(),
          .half_flops_per_s = bench.product_flops_per_s(DType::bf16, trial.product_side),
          .f32_flops_per_s = bench.product_flops_per_s(DType::f32, trial.product_side / 2),
          .to_device_bytes_per_s = bench.to_device_bytes_per_s(),
          .to_host_bytes_per_s = bench.to_host_bytes_per_s(),
          .launch_s = bench.launch_s(),
          .graph_kernel_s = bench.graph_kernel_s(),
          .graph_launch_s = bench.graph_launch_s()};
}

}  // namespace foreshard::engine::cuda
