// Threads of a block: what they share, where they meet, and what is wrong if they do not.
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "rehearsal/device/arrays.hpp"
#include "rehearsal/device/library/kernels.hpp"
#include "rehearsal/device/rehearsal.hpp"

namespace rehearsal {
namespace {

class Threads : public Rehearsal {};

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

TEST_F(Threads, ShareMemoryAndMeetAtBarriers) {
  const Array<float> x(numbers(512)), y(2);
  ASSERT_EQ(run(sum_by_tree, 2, 256, x.data(), y.data(), true), cudaSuccess);
  EXPECT_EQ(y.values(), (std::vector<float>{256 * 257 / 2, 256 * 257 / 2 + 256 * 256}));
}

/// The race checker stops the program; without it the order of threads shows what is missing.
TEST_F(Threads, ThatForgetABarrierAreFound) {
#if defined(__SANITIZE_THREAD__)
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Array<float> x(numbers(512)), y(2);
  const auto forget = [&] {
    run(sum_by_tree, 2, 256, x.data(), y.data(), false);
    std::exit(0);  // as what the sanitizer wants
  };
  EXPECT_EXIT(forget(), testing::ExitedWithCode(66), "data race");
#else
  const Array<float> x(numbers(512)), y(2);
  ASSERT_EQ(run(sum_by_tree, 2, 256, x.data(), y.data(), false), cudaSuccess);
  EXPECT_NE(y.values()[0], 256 * 257 / 2);
#endif
}

TEST_F(Threads, FindNoNumberInSharedMemoryThatNobodyWrote) {
  const Array<float> y(64);
  cudaLaunchConfig_t config = {.gridDim = 1, .blockDim = 32, .dynamicSmemBytes = 128};
  ASSERT_EQ(cudaLaunchKernelEx(&config, read_unwritten, y.data(), true), cudaSuccess);
  ASSERT_EQ(cudaLaunchKernelEx(&config, read_unwritten, y.data(), false), cudaSuccess);
  for (const float value : y.values()) EXPECT_TRUE(std::isnan(value));
}

TEST_F(Threads, OfAWarpExchangeRegisters) {
  const Array<float> x(numbers(64)), y(64);
  ASSERT_EQ(run(sum_of_warp, 1, 64, x.data(), y.data()), cudaSuccess);
  const auto sums = y.values();
  for (int i = 0; i < 64; ++i) EXPECT_EQ(sums[i], i < 32 ? 528 : 528 + 32 * 32);
}

__global__ void fill(float* y, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) y[i] = static_cast<float>(i);
}

TEST_F(Threads, FillAnArray) {
  const Array<float> y(1000);
  ASSERT_EQ(run(fill, 4, 256, y.data(), 1000), cudaSuccess);
  const auto values = y.values();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(values[i], i);
}

void expect_failure(cudaError_t error, const std::vector<std::string>& parts) {
  EXPECT_EQ(error, cudaErrorLaunchFailure);
  expect_report(parts);
}

__global__ void leave_before_barrier(unsigned who) {
  if (threadIdx.x == who) return;
  __syncthreads();
}
TEST_F(Threads, ThatEndBeforeABarrierAreNamed) {
  expect_failure(run(leave_before_barrier, 1, 64, 5U),
                 {"leave_before_barrier", "block (0, 0, 0)", "thread (5, 0, 0)", "63 threads wait", "block_test.cpp"});
}

__global__ void wait_at_two_places() {
  if (threadIdx.x % 2 == 0)
    __syncthreads();
  else
    __syncthreads();
}
TEST_F(Threads, ThatWaitAtDifferentBarriersAreNamed) {
  expect_failure(run(wait_at_two_places, 1, 64), {"wait_at_two_places", "other threads wait at"});
}

__global__ void shuffle_without(unsigned who) {
  if (threadIdx.x != who) __shfl_xor_sync(0xFFFFFFFFU, 1, 1);
}
TEST_F(Threads, MissingInAShuffleAreNamed) {
  expect_failure(run(shuffle_without, 1, 64, 37U), {"shuffle_without", "__shfl_xor_sync", "0xffffffff", "0xffffffdf"});
}

}  // namespace
}  // namespace rehearsal
