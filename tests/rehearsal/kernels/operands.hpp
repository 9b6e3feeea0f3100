#pragma once
#include <map>

#include "kernels/cuda/check.hpp"
#include "kernels/operand.hpp"

namespace foreshard::kernels {

/// The operands of one call, in memory of the current device: copied there, and back when the call is done. Arrays that
/// are one on the host are one on the device.
class Operands {
 public:
  explicit Operands(cudaStream_t stream) : stream_(stream) {}
  Operands(const Operands&) = delete;
  ~Operands() {
    for (const auto& [host, array] : arrays_) cudaFree(array.device);
  }

  Const in(const Const& x, std::int64_t count) {
    return {x.data ? at(x.data, count * size_bytes(x.dtype)).device : nullptr, x.dtype};
  }
  Mut out(const Mut& x, std::int64_t count) {
    if (!x.data) return x;
    Array& array = at(x.data, count * size_bytes(x.dtype));
    array.written = true;
    return {array.device, x.dtype};
  }
  /// Waits for the stream and brings the results back.
  void finish() {
    cuda::check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    for (const auto& [host, array] : arrays_) {
      if (array.written)
        cuda::check(cudaMemcpy(const_cast<void*>(host), array.device, static_cast<std::size_t>(array.size_bytes),
                               cudaMemcpyDeviceToHost),
                    "cudaMemcpy");
    }
  }

 private:
  struct Array {
    void* device = nullptr;
    std::int64_t size_bytes = 0;
    bool written = false;
  };

  Array& at(const void* host, std::int64_t size_bytes) {
    Array& array = arrays_[host];
    if (array.device) {
      FORESHARD_EXPECT(array.size_bytes == size_bytes, "one array, two sizes");
      return array;
    }
    const auto bytes = static_cast<std::size_t>(size_bytes);
    cuda::check(cudaMalloc(&array.device, bytes), "cudaMalloc");
    cuda::check(cudaMemcpy(array.device, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    array.size_bytes = size_bytes;
    return array;
  }

  cudaStream_t stream_;
  std::map<const void*, Array> arrays_;
};

}  // namespace foreshard::kernels
