#pragma once
#include <functional>
#include <vector>

#include "engine/cuda/memory.hpp"
#include "engine/cuda/stream.hpp"
#include "kernels/cuda/backend.hpp"

namespace foreshard::gpu_bench {

/// Seconds of one call of work on a device: the middle of several measurements, and how far apart most of them were.
struct Timing {
  double median_s = 0, p10_s = 0, p90_s = 0;
};

/// The kernels on a stream of the current device, with a workspace as an engine gives them.
class Device {
 public:
  Device();
  kernels::cuda::Kernels& kernels() { return *kernels_; }
  const engine::cuda::Stream& stream() const { return stream_; }

  /// Times what `queue` puts on the stream: one call that does not count, then `repeats` times `calls` of them between
  /// two events.
  Timing time(const std::function<void()>& queue, int repeats = 15, int calls = 4) const;

 private:
  static constexpr std::int64_t workspace_bytes = std::int64_t{64} << 20;

  engine::cuda::Stream stream_;
  engine::cuda::DeviceMemory workspace_;
  std::unique_ptr<kernels::cuda::Kernels> kernels_;
};

/// Numbers on the device between −spread/2 and spread/2, a million of them over and over; zeros would cost a product
/// less power, and so less time, than it takes in training.
class Numbers {
 public:
  Numbers(std::int64_t count, DType dtype, float spread = 1);
  operator kernels::Const() const { return {memory_.data(), dtype_}; }
  operator kernels::Mut() const { return {memory_.data(), dtype_}; }

 private:
  DType dtype_;
  engine::cuda::DeviceMemory memory_;
};

/// Tokens on the device, each of the vocabulary about equally often.
class Tokens {
 public:
  Tokens(std::int64_t count, std::int64_t vocab);
  operator kernels::Const() const { return {memory_.data(), DType::i32}; }
  std::int64_t distinct() const { return distinct_; }  ///< how many of the vocabulary occur

 private:
  engine::cuda::DeviceMemory memory_;
  std::int64_t distinct_ = 0;
};

/// As on CUDA devices: the middle and the tenths of some seconds.
Timing timing_of(std::vector<double> seconds);

}  // namespace foreshard::gpu_bench
