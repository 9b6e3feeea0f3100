#pragma once
#include "arrays.hpp"
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/check.hpp"

namespace foreshard::kernels::cuda {

/// An array in device memory.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : count_(static_cast<std::int64_t>(values.size())) {
    check(cudaMalloc(reinterpret_cast<void**>(&data_), bytes()), "cudaMalloc");
    check(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  explicit DeviceArray(const Array<T>& array) : DeviceArray(array.data) {}
  DeviceArray(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* data() const { return data_; }
  operator Const() const { return {data_, dtype_of<T>}; }
  operator Mut() const { return {data_, dtype_of<T>}; }
  std::vector<T> values() const {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<T> host(static_cast<std::size_t>(count_));
    check(cudaMemcpy(host.data(), data_, bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return host;
  }
  T value() const { return values().at(0); }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(T); }

  std::int64_t count_;
  T* data_ = nullptr;
};

}  // namespace foreshard::kernels::cuda
