// Products as cuBLASLt describes them: column by column, with transposes, bias and what was there before.
#include <cublasLt.h>

#include "cuda_bf16.h"
#include "rehearsal/device/arrays.hpp"
#include "rehearsal/device/rehearsal.hpp"

namespace rehearsal {
namespace {

constexpr int m = 5, n = 3, k = 4;

/// d[m, n] = op(a)·op(b) + beta·c + bias, with everything that can be asked of it.
class Products : public Rehearsal {
 protected:
  void SetUp() override {
    Rehearsal::SetUp();
    ASSERT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    for (const auto layout : layouts_) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(product_);
    cublasLtDestroy(handle_);
    Rehearsal::TearDown();
  }
  void describe(bool flip_a, bool flip_b, cudaDataType operands, cudaDataType result) {
    const cublasOperation_t a = flip_a ? CUBLAS_OP_T : CUBLAS_OP_N, b = flip_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtMatmulDescCreate(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a);
    cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b);
    cublasLtMatrixLayoutCreate(&layouts_[0], operands, flip_a ? k : m, flip_a ? m : k, flip_a ? k : m);
    cublasLtMatrixLayoutCreate(&layouts_[1], operands, flip_b ? n : k, flip_b ? k : n, flip_b ? n : k);
    cublasLtMatrixLayoutCreate(&layouts_[2], result, m, n, m);
  }
  void add_bias(const void* bias) {
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
  }
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms(std::uint64_t workspace_bytes) {
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                         sizeof workspace_bytes);
    std::vector<cublasLtMatmulHeuristicResult_t> found(8);
    int count = 0;
    status_ = cublasLtMatmulAlgoGetHeuristic(handle_, product_, layouts_[0], layouts_[1], layouts_[2], layouts_[2],
                                             preference, 8, found.data(), &count);
    found.resize(count);
    cublasLtMatmulPreferenceDestroy(preference);
    return found;
  }
  cublasStatus_t multiply(const cublasLtMatmulAlgo_t& algorithm, const void* a, const void* b, float beta, void* d,
                          void* workspace = nullptr, std::size_t workspace_bytes = 0) {
    const float alpha = 1;
    return cublasLtMatmul(handle_, product_, &alpha, a, layouts_[0], b, layouts_[1], &beta, d, layouts_[2], d,
                          layouts_[2], &algorithm, workspace, workspace_bytes, nullptr);
  }

  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t layouts_[3] = {};
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
};

float a_at(int i, int j) { return static_cast<float>(i * 3 - j * 2 + 1); }
float b_at(int i, int j) { return static_cast<float>(i - j * 5 + 2); }

/// Column by column, or row by row if `flip`.
std::vector<float> matrix(int rows, int cols, bool flip, float (*at)(int, int)) {
  std::vector<float> x(rows * cols);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) x[flip ? i * cols + j : j * rows + i] = at(i, j);
  return x;
}

float expected(int i, int j) {
  float sum = 0;
  for (int l = 0; l < k; ++l) sum += a_at(i, l) * b_at(l, j);
  return sum;
}

class ProductsOf : public Products, public testing::WithParamInterface<std::pair<bool, bool>> {};

TEST_P(ProductsOf, AllTransposesByAllAlgorithms) {
  const auto [flip_a, flip_b] = GetParam();
  describe(flip_a, flip_b, CUDA_R_32F, CUDA_R_32F);
  const Array<float> a(matrix(m, k, flip_a, a_at)), b(matrix(k, n, flip_b, b_at)), bias({10, 20, 30, 40, 50});
  const Array<float> workspace(4 * m * n);
  add_bias(bias.data());
  const auto found = algorithms(4 * m * n * sizeof(float));
  ASSERT_EQ(found.size(), 3U);
  for (const auto& algorithm : found) {
    const Array<float> d(std::vector<float>(m * n, 1000));
    ASSERT_EQ(multiply(algorithm.algo, a.data(), b.data(), 2, d.data(), workspace.data(), algorithm.workspaceSize),
              CUBLAS_STATUS_SUCCESS);
    const auto values = d.values();
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j)
        EXPECT_EQ(values[j * m + i], expected(i, j) + 2000 + static_cast<float>(10 * (i + 1)));
  }
}
INSTANTIATE_TEST_SUITE_P(Rehearsal, ProductsOf,
                         testing::Values(std::pair(false, false), std::pair(false, true), std::pair(true, false),
                                         std::pair(true, true)));

TEST_F(Products, OfHalvesIntoFloatOrRoundedOnce) {
  describe(false, false, CUDA_R_16BF, CUDA_R_16BF);
  std::vector<__nv_bfloat16> ones(m * k, __float2bfloat16_rn(1)), parts(k * n, __float2bfloat16_rn(1 + 0x1p-7F));
  const Array<__nv_bfloat16> a(ones), b(parts), d(m * n);
  ASSERT_EQ(multiply(algorithms(0).at(0).algo, a.data(), b.data(), 0, d.data()), CUBLAS_STATUS_SUCCESS);
  for (const auto value : d.values()) EXPECT_EQ(__bfloat162float(value), 4 + 0x1p-5F);
}

TEST_F(Products, IgnoreWhatWasThereIfBetaIsZero) {
  describe(false, false, CUDA_R_32F, CUDA_R_32F);
  const Array<float> a(matrix(m, k, false, a_at)), b(matrix(k, n, false, b_at)), d(m * n);  // d is not a number
  ASSERT_EQ(multiply(algorithms(0).at(0).algo, a.data(), b.data(), 0, d.data()), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(d.values()[0], expected(0, 0));
}

TEST_F(Products, AreRefusedWhereTheLibraryWould) {
  describe(false, false, CUDA_R_16BF, CUDA_R_16F);
  algorithms(0);
  EXPECT_EQ(status_, CUBLAS_STATUS_NOT_SUPPORTED);
  for (const auto layout : layouts_) cublasLtMatrixLayoutDestroy(layout);
  cublasLtMatmulDescDestroy(product_);
  describe(true, true, CUDA_R_32F, CUDA_R_32F);
  const cublasOperation_t plain = CUBLAS_OP_N;
  cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_TRANSA, &plain, sizeof plain);
  algorithms(0);
  EXPECT_EQ(status_, CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(Products, NeedTheirWorkspaceAndAlignment) {
  describe(false, false, CUDA_R_32F, CUDA_R_32F);
  const Array<float> a(m * k + 1), b(k * n), d(m * n);
  const auto found = algorithms(1 << 20);
  EXPECT_EQ(multiply(found.at(1).algo, a.data(), b.data(), 0, d.data(), nullptr, 0), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_NE(reports().at(0).find("needs a workspace of 120 bytes"), std::string::npos);
  EXPECT_EQ(multiply(found.at(0).algo, a.data() + 1, b.data(), 0, d.data()), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_NE(reports().at(1).find("is not aligned to 16 bytes"), std::string::npos);
}

TEST_F(Products, FaultBehindTheirOperands) {
  describe(false, false, CUDA_R_32F, CUDA_R_32F);
  const Array<float> a(m * k - 1), b(k * n), d(m * n);
  ASSERT_EQ(multiply(algorithms(0).at(0).algo, a.data(), b.data(), 0, d.data()), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  expect_report({"cublasLtMatmul: a: 80 bytes from", "where 76 are left"});
}

}  // namespace
}  // namespace rehearsal
