#include "rehearsal/blas/product.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "cuda_bf16.h"
#include "cuda_fp16.h"

namespace rehearsal {
namespace {

constexpr double gelu_scale = 0.7978845608028654, gelu_cubic = 0.044715;

float number(const void* data, std::size_t i, cudaDataType_t type) {
  switch (type) {
    case CUDA_R_16BF:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
    case CUDA_R_16F:
      return __half2float(static_cast<const __half*>(data)[i]);
    default:
      return static_cast<const float*>(data)[i];
  }
}

void store(void* data, std::size_t i, cudaDataType_t type, float value) {
  switch (type) {
    case CUDA_R_16BF:
      static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(value);
      break;
    case CUDA_R_16F:
      static_cast<__half*>(data)[i] = __float2half_rn(value);
      break;
    default:
      static_cast<float*>(data)[i] = value;
  }
}

/// op(matrix) with columns (or rows) side by side: x[j·rows + i] is its element (i, j), or (j, i).
std::vector<float> widened(const cublasLtMatrixLayoutOpaque_t& layout, const void* data, bool by_rows) {
  std::vector<float> x(layout.rows * layout.cols);
  for (std::uint64_t j = 0; j < layout.cols; ++j)
    for (std::uint64_t i = 0; i < layout.rows; ++i)
      x[by_rows ? i * layout.cols + j : j * layout.rows + i] =
          number(data, j * static_cast<std::uint64_t>(layout.leading_dimension) + i, layout.type);
  return x;
}

/// sum[i] += Σ over k in [begin, end) of a[k, i]·b[k], in order of k.
void add_column(const float* a, const float* b, std::uint64_t m, std::uint64_t begin, std::uint64_t end, float* sum) {
  for (std::uint64_t k = begin; k < end; ++k)
    for (std::uint64_t i = 0; i < m; ++i) sum[i] += a[k * m + i] * b[k];
}

std::uint64_t place(const cublasLtMatrixLayoutOpaque_t& layout, std::uint64_t i, std::uint64_t j) {
  return j * static_cast<std::uint64_t>(layout.leading_dimension) + i;
}

/// The GELU in its tanh form, and its slope.
double gelu(double x) { return 0.5 * x * (1 + std::tanh(gelu_scale * (x + gelu_cubic * x * x * x))); }
double gelu_slope(double x) {
  const double t = std::tanh(gelu_scale * (x + gelu_cubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * gelu_scale * (1 + 3 * gelu_cubic * x * x);
}

/// What the epilogue makes of a sum; it may keep the sum in the auxiliary matrix.
float finished(const Product& o, std::uint64_t i, std::uint64_t j, float value) {
  const cublasLtMatmulDescOpaque_t& epilogue = o.description;
  if (epilogue.adds_bias()) value += number(epilogue.bias, i, o.d.type);
  const std::uint64_t at = place(o.auxiliary(), i, j);
  if (epilogue.is_gelu()) {
    store(const_cast<void*>(epilogue.auxiliary), at, o.d.type, value);
    return static_cast<float>(gelu(value));
  }
  return epilogue.is_gelu_backward() ? static_cast<float>(value * gelu_slope(number(epilogue.auxiliary, at, o.d.type)))
                                     : value;
}

/// Over k, of op(b) with columns side by side.
void sum_columns(const Product& o, const std::vector<float>& b) {
  for (std::uint64_t j = 0; j < o.n(); ++j) {
    float sum = 0;
    for (std::uint64_t k = 0; k < o.k(); ++k) sum += b[j * o.k() + k];
    store(const_cast<void*>(o.description.bias), j, o.d.type, sum);
  }
}

bool fits(const cublasLtMatrixLayoutOpaque_t& layout) {
  return layout.rows > 0 && layout.cols > 0 && layout.leading_dimension >= static_cast<std::int64_t>(layout.rows);
}

/// The rows of cuBLASLt's table for sums and scale in f32 that it has for matrices column by column.
bool has_types(cudaDataType_t operands, cudaDataType_t result) {
  return (operands == CUDA_R_32F || operands == CUDA_R_16BF || operands == CUDA_R_16F) &&
         (result == operands || result == CUDA_R_32F);
}

}  // namespace

std::size_t size_of(cudaDataType_t type) { return type == CUDA_R_32F ? 4 : 2; }
std::size_t bytes_of(const cublasLtMatrixLayoutOpaque_t& layout) {
  return ((layout.cols - 1) * static_cast<std::uint64_t>(layout.leading_dimension) + layout.rows) *
         size_of(layout.type);
}

cublasStatus_t Product::status() const {
  const bool flip_a = description.transpose_a == CUBLAS_OP_T, flip_b = description.transpose_b == CUBLAS_OP_T;
  const bool sizes = fits(a) && fits(b) && fits(c) && fits(d) && c.rows == d.rows && c.cols == d.cols &&
                     (flip_a ? a.cols : a.rows) == d.rows && (flip_b ? b.rows : b.cols) == d.cols &&
                     (flip_b ? b.cols : b.rows) == k();
  if (!sizes) return CUBLAS_STATUS_INVALID_VALUE;
  if (description.has_auxiliary() && (auxiliary().leading_dimension % 8 != 0 || !fits(auxiliary())))
    return CUBLAS_STATUS_INVALID_VALUE;
  const bool bias = description.adds_bias() || description.sums_b();
  const bool bias_type = description.bias_type == -1 || description.bias_type == d.type;
  const bool types = description.compute == CUBLAS_COMPUTE_32F && description.scale == CUDA_R_32F && a.type == b.type &&
                     c.type == d.type && has_types(a.type, d.type) && (!bias || bias_type);
  return types ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

void multiply(const Product& o, float alpha, float beta, const Pointers& at) {
  const std::uint64_t m = o.m(), k = o.k(), part = (k + o.splits - 1) / o.splits;
  const auto a = widened(o.a, at.a, o.description.transpose_a == CUBLAS_OP_T);
  const auto b = widened(o.b, at.b, o.description.transpose_b == CUBLAS_OP_T);
  if (o.workspace_bytes() != 0) std::memset(at.workspace, 0xFF, o.workspace_bytes());
  std::vector<float> sum(m), part_sum(m);
  for (std::uint64_t j = 0; j < o.n(); ++j) {
    std::fill(sum.begin(), sum.end(), 0.0F);
    for (std::uint64_t begin = 0; begin < k; begin += part) {
      std::fill(part_sum.begin(), part_sum.end(), 0.0F);
      add_column(a.data(), b.data() + j * k, m, begin, std::min(k, begin + part), part_sum.data());
      for (std::uint64_t i = 0; i < m; ++i) sum[i] += part_sum[i];
    }
    for (std::uint64_t i = 0; i < m; ++i) {
      float value = alpha * sum[i];
      if (beta != 0) value += beta * number(at.c, place(o.c, i, j), o.c.type);
      store(at.d, place(o.d, i, j), o.d.type, finished(o, i, j, value));
    }
  }
  if (o.description.sums_b()) sum_columns(o, b);
}

}  // namespace rehearsal
