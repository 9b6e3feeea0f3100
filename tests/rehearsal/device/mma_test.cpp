// Products of matrix fragments: with operands that name their row and column, so that any other layout shows.
#include <kernels/cuda/dynamic_shared.hpp>
#include <kernels/cuda/mma.hpp>

#include "rehearsal/device/arrays.hpp"
#include "rehearsal/device/rehearsal.hpp"

namespace rehearsal {
namespace {

namespace cuda = foreshard::kernels::cuda;

class TensorCores : public Rehearsal {};

__device__ std::uint32_t pair(float first, float second) {
  return std::uint32_t{__float2bfloat16_rn(first).bits} | std::uint32_t{__float2bfloat16_rn(second).bits} << 16;
}

/// d = a·b by the layout that the PTX ISA states: lane 4g + t holds rows g and g + 8.
__global__ void multiply(const float* a, const float* b, float* d) {
  const unsigned g = threadIdx.x / 4, t = threadIdx.x % 4;
  std::uint32_t a_pairs[4], b_pairs[2];
  for (unsigned i = 0; i < 4; ++i) {
    const float* at = a + (g + i % 2 * 8) * 16 + 2 * t + i / 2 * 8;
    a_pairs[i] = pair(at[0], at[1]);
  }
  for (unsigned i = 0; i < 2; ++i) b_pairs[i] = pair(b[(2 * t + i * 8) * 8 + g], b[(2 * t + i * 8 + 1) * 8 + g]);
  float sum[4] = {1, 1, 1, 1};
  cuda::multiply_add<__nv_bfloat16>(sum, a_pairs, b_pairs);
  for (unsigned i = 0; i < 4; ++i) d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];
}

TEST_F(TensorCores, MultiplyFragments) {
  std::vector<float> a(16 * 16), b(16 * 8), expected(16 * 8, 1);
  for (int i = 0; i < 256; ++i) a[i] = static_cast<float>(i * 7 % 13 - 6);
  for (int i = 0; i < 128; ++i) b[i] = static_cast<float>(i * 5 % 11 - 5);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j)
      for (int k = 0; k < 16; ++k) expected[i * 8 + j] += a[i * 16 + k] * b[k * 8 + j];
  const Array<float> da(a), db(b), d(128);
  ASSERT_EQ(run(multiply, 1, 32, da.data(), db.data(), d.data()), cudaSuccess);
  EXPECT_EQ(d.values(), expected);
}

/// r[m] of all lanes, of four matrices whose element (i, j) is 100·m + 10·i + j.
__global__ void load(unsigned* loaded, bool transposed, bool misaligned) {
  auto* x = cuda::dynamic_shared<std::uint16_t>();
  for (unsigned i = threadIdx.x; i < 256; i += 32)
    x[i] = static_cast<std::uint16_t>(i / 64 * 100 + i / 8 % 8 * 10 + i % 8);
  __syncwarp();
  std::uint32_t r[4];
  const std::uint16_t* row = x + threadIdx.x * 8 + (misaligned ? 1 : 0);
  if (transposed)
    cuda::load_matrices_transposed(r, row);
  else
    cuda::load_matrices(r, row);
  for (unsigned m = 0; m < 4; ++m) loaded[threadIdx.x * 4 + m] = r[m];
}

std::vector<unsigned> loaded(bool transposed, bool misaligned, cudaError_t expected) {
  const Array<unsigned> r(128);
  cudaLaunchConfig_t config = {.gridDim = 1, .blockDim = 32, .dynamicSmemBytes = 1024};
  EXPECT_EQ(cudaLaunchKernelEx(&config, load, r.data(), transposed, misaligned), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), expected);
  return expected == cudaSuccess ? r.values() : std::vector<unsigned>();
}

TEST_F(TensorCores, LoadMatricesByRowsAndByColumns) {
  const auto plain = loaded(false, false, cudaSuccess), transposed = loaded(true, false, cudaSuccess);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned m = 0; m < 4; ++m) {
      const unsigned g = lane / 4, t = lane % 4 * 2;
      EXPECT_EQ(plain[lane * 4 + m], (100 * m + 10 * g + t) | (100 * m + 10 * g + t + 1) << 16);
      EXPECT_EQ(transposed[lane * 4 + m], (100 * m + 10 * t + g) | (100 * m + 10 * (t + 1) + g) << 16);
    }
}

TEST_F(TensorCores, WantAlignedRows) {
  loaded(false, true, cudaErrorLaunchFailure);
  expect_report({"ldmatrix: a row is not aligned to 16 bytes"});
}

/// Copies 16 bytes by each thread and reads what its neighbour copied.
__global__ void copy_and_read(const float4* from, float* seen, bool waits) {
  auto* x = cuda::dynamic_shared<float4>();
  cuda::copy_async(x + threadIdx.x, from + threadIdx.x, threadIdx.x != 3);
  cuda::commit_copies();
  if (waits) cuda::wait_for_copies<0>();
  __syncthreads();
  seen[threadIdx.x] = x[(threadIdx.x + 1) % blockDim.x].x;
}

std::vector<float> copied(bool waits) {
  std::vector<float4> from(32);
  for (int i = 0; i < 32; ++i) from[i] = {static_cast<float>(i), 0, 0, 0};
  const Array<float4> x(from);
  const Array<float> seen(32);
  cudaLaunchConfig_t config = {.gridDim = 1, .blockDim = 32, .dynamicSmemBytes = 512};
  EXPECT_EQ(cudaLaunchKernelEx(&config, copy_and_read, x.data(), seen.data(), waits), cudaSuccess);
  return seen.values();
}

TEST_F(TensorCores, SeeAsynchronousCopiesOnlyOnceTheyAreWaitedFor) {
  const auto late = copied(true), early = copied(false);
  for (int i = 0; i < 32; ++i) {
    const int copied_by = (i + 1) % 32;
    EXPECT_EQ(late[i], copied_by == 3 ? 0 : copied_by);
    EXPECT_TRUE(std::isnan(early[i]));
  }
}

}  // namespace
}  // namespace rehearsal
