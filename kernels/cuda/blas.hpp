#pragma once
#include <cublasLt.h>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/dtype.hpp"
#include "base/error.hpp"

/// cuBLASLt's objects, owned. Throws LibraryError where the library fails.
namespace foreshard::kernels::cuda {

inline void check(cublasStatus_t status, std::string_view call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw LibraryError(std::string(call) + ": " + cublasLtGetStatusString(status));
}

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* object) const {
    destroy(object);
  }
};
template <class Handle, auto destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<destroy>>;

using BlasHandle = Owned<cublasLtHandle_t, cublasLtDestroy>;
using ProductDescription = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

inline cudaDataType_t blas_type(DType type) {
  return type == DType::f32 ? CUDA_R_32F : type == DType::bf16 ? CUDA_R_16BF : CUDA_R_16F;
}

inline BlasHandle make_handle() {
  cublasLtHandle_t handle = nullptr;
  check(cublasLtCreate(&handle), "cublasLtCreate");
  return BlasHandle(handle);
}
/// Of products summed in f32, never in TF32.
inline ProductDescription make_description() {
  cublasLtMatmulDesc_t description = nullptr;
  check(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  return ProductDescription(description);
}
/// Of a dense matrix, column by column.
inline Layout make_layout(DType type, std::int64_t rows, std::int64_t cols) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, blas_type(type), static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(cols), rows),
        "cublasLtMatrixLayoutCreate");
  return Layout(layout);
}
inline Preference make_preference() {
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  return Preference(preference);
}

template <class T>
void set(const ProductDescription& description, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check(cublasLtMatmulDescSetAttribute(description.get(), attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
}
template <class T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
}

}  // namespace foreshard::kernels::cuda
