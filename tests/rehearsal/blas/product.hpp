#pragma once
#include "cublasLt.h"

struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType_t type;
  std::uint64_t rows, cols;  ///< column by column
  std::int64_t leading_dimension;

  bool operator==(const cublasLtMatrixLayoutOpaque_t&) const = default;
};

struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;       ///< of d's rows; of BGRADB a result, of d's columns
  std::int32_t bias_type = -1;      ///< a cudaDataType_t; -1: that of d
  const void* auxiliary = nullptr;  ///< a matrix of d's sizes and type: a result of GELU_AUX, an operand of DGELU
  std::int64_t auxiliary_leading_dimension = 0;

  bool adds_bias() const { return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS; }
  bool sums_b() const { return epilogue == CUBLASLT_EPILOGUE_BGRADB; }
  bool is_gelu() const { return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS; }
  bool is_gelu_backward() const { return epilogue == CUBLASLT_EPILOGUE_DGELU; }
  bool has_auxiliary() const { return is_gelu() || is_gelu_backward(); }
};

struct cublasLtMatmulPreferenceOpaque_t {
  std::uint64_t workspace_bytes = 0;
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t alignment[4] = {256, 256, 256, 256};  ///< of a, b, c, d
};

namespace rehearsal {

/// d = epilogue(alpha·op(a)·op(b) + beta·c), of sizes m × n and k, with sums of `splits` parts of k.
struct Product {
  cublasLtMatmulDescOpaque_t description;
  cublasLtMatrixLayoutOpaque_t a, b, c, d;
  std::uint64_t splits = 1;

  std::uint64_t m() const { return d.rows; }
  std::uint64_t n() const { return d.cols; }
  /// The auxiliary matrix, column by column.
  cublasLtMatrixLayoutOpaque_t auxiliary() const {
    return {d.type, d.rows, d.cols, description.auxiliary_leading_dimension};
  }
  std::uint64_t bias_size() const { return description.sums_b() ? n() : m(); }
  std::uint64_t k() const { return description.transpose_a == CUBLAS_OP_N ? a.cols : a.rows; }
  /// Whether cuBLASLt takes such operands: SUCCESS, INVALID_VALUE if sizes do not fit, NOT_SUPPORTED if types do not.
  cublasStatus_t status() const;
  std::uint64_t workspace_bytes() const { return splits == 1 ? 0 : splits * m() * n() * sizeof(float); }
};

struct Pointers {
  const void *a, *b, *c;
  void *d, *workspace;
};

/// Pointers are where memory really is. Plain loops; each part is summed in f32, in order.
void multiply(const Product&, float alpha, float beta, const Pointers&);

std::size_t size_of(cudaDataType_t);
/// From the first element of a matrix to behind its last.
std::size_t bytes_of(const cublasLtMatrixLayoutOpaque_t&);

}  // namespace rehearsal
