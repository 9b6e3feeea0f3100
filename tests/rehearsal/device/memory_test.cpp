// Memory of devices and of the host: that one is not taken for the other, and that nothing lies beyond what was asked
// for.
#include <cmath>
#include <cstring>

#include "rehearsal/device/arrays.hpp"
#include "rehearsal/device/rehearsal.hpp"
#include "rehearsal/device/streams.hpp"

namespace rehearsal {
namespace {

class DeviceMemory : public Rehearsal {};
class DeviceMemoryDeath : public Rehearsal {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer says in its own words who faulted";
#endif
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // streams are threads
    Rehearsal::SetUp();
  }
};

TEST_F(DeviceMemory, IsNoNumberAtFirst) {
  const Array<float> x(100);
  for (const float value : x.values()) EXPECT_TRUE(std::isnan(value));
  const Array<double> y(100);
  for (const double value : y.values()) EXPECT_TRUE(std::isnan(value));
}

TEST_F(DeviceMemoryDeath, FaultsWhereTheHostUsesIt) {
  const Array<int> x(4);
  EXPECT_DEATH(*x.data() = 1, "the host used address .*: byte 0 of 16 bytes of device 0");
}

TEST_F(DeviceMemory, IsToldFromTheHosts) {
  const Array<int> x(4);
  int host[4] = {};
  EXPECT_EQ(cudaMemcpy(host, x.data(), 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect_report({"cudaMemcpy: destination", "is said to be on the device, but is pageable host memory"});
  EXPECT_EQ(cudaMemcpy(x.data(), host, 16, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x.data(), host, 16, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(host, 0, 16), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, x.data(), 16, cudaMemcpyDefault), cudaSuccess);
}

TEST_F(DeviceMemory, HasAnEnd) {
  const Array<int> x(4);
  int host[8] = {};
  EXPECT_EQ(cudaMemcpy(x.data() + 2, host, 12, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect_report({"12 bytes from", "where 8 are left"});
}

TEST_F(DeviceMemory, OfAnotherDeviceIsNotReached) {
  const Array<int> x(4);
  cudaSetDevice(1);
  {
    const Array<int> y(4);
    EXPECT_EQ(cudaMemcpy(y.data(), x.data(), 16, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
    expect_report({"is in device 0, used on device 1"});
  }
  cudaSetDevice(0);
}

TEST_F(DeviceMemory, RunsOut) {
  reset(1, 1000);
  int *x = nullptr, *y = nullptr;
  std::size_t free = 0, total = 0;
  ASSERT_EQ(cudaMalloc(&x, 600), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&y, 600), cudaErrorMemoryAllocation);
  cudaMemGetInfo(&free, &total);
  EXPECT_EQ(free, 400U);
  EXPECT_EQ(total, 1000U);
  EXPECT_EQ(cudaFree(x), cudaSuccess);
  EXPECT_EQ(cudaFree(x), cudaErrorInvalidValue);
}

TEST_F(DeviceMemory, IsNotWhatAHostPointerLeadsTo) {
  int host = 0;
  EXPECT_EQ(run(set_to, 1, 1, &host, 1), cudaErrorIllegalAddress);
  expect_report({"set_to", "argument 0", "is pageable host memory"});
}

struct Pair {
  int* x;
  long y;
};
__global__ void set_in_pair(Pair pair) { *pair.x = static_cast<int>(pair.y); }
TEST_F(DeviceMemory, IsReachedByPointersInStructures) {
  const Array<int> x(1);
  ASSERT_EQ(run(set_in_pair, 1, 1, Pair{x.data(), 7}), cudaSuccess);
  EXPECT_EQ(x.values()[0], 7);
}

/// What is behind the last member may be anything; here it makes an address of the last two members.
struct Tailed {
  std::uint32_t low;
  std::uint8_t high;
};
__global__ void read_tailed(Tailed tailed, std::uint32_t* low, std::uint32_t* high) {
  *low = tailed.low;
  *high = tailed.high;
}
TEST_F(DeviceMemory, IsNotReachedByPaddingInStructures) {
  const Array<std::uint32_t> low(1), high(1);
  Tailed tailed;
  const void* const address = low.data();
  static_assert(sizeof tailed == sizeof address);
  std::memcpy(static_cast<void*>(&tailed), &address, sizeof address);
  const Tailed seen = tailed;
  ASSERT_EQ(run(read_tailed, 1, 1, tailed, low.data(), high.data()), cudaSuccess);
  EXPECT_EQ(low.values()[0], seen.low);
  EXPECT_EQ(high.values()[0], seen.high);
}

struct Nothing {};

__global__ void store_beside_nothing(std::uint32_t first, Nothing, std::uint32_t* to, Nothing, std::uint32_t second) {
  to[0] = first, to[1] = second;
}

/// These share their place with other arguments.
TEST_F(DeviceMemory, IsNotReachedThroughEmptyStructures) {
  const Array<std::uint32_t> x(4);
  ASSERT_EQ(run(store_beside_nothing, 1, 1, 0x01020304U, Nothing{}, x.data() + 1, Nothing{}, 0x05060708U), cudaSuccess);
  EXPECT_EQ(x.values()[1], 0x01020304U);
  EXPECT_EQ(x.values()[2], 0x05060708U);
}

TEST_F(DeviceMemoryDeath, FaultsBehindAnAllocation) {
  const Array<int> x(64);
  EXPECT_DEATH(
      run(set_to, 1, 65, x.data(), 1),
      "kernel rehearsal::set_to.*block \\(0, 0, 0\\), thread \\(64, 0, 0\\) used address .*: 0 bytes behind an "
      "allocation of 256 bytes of device 0");
}

TEST_F(DeviceMemoryDeath, FaultsAfterItIsFreed) {
  EXPECT_DEATH(
      {
        int* x = nullptr;
        cudaMalloc(&x, 256);
        const Queue stream;
        cudaLaunchHostFunc(
            stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }, nullptr);
        cudaFree(x);
        // An address that a program kept, in memory where no launch looks for it.
        run(set_in_pair, 1, 1, Pair{x, 7});
      },
      "byte 0 of freed 256 bytes of device 0");
}

TEST_F(DeviceMemory, CopiesOfPinnedMemoryReturnAtOnce) {
  int* host = nullptr;
  ASSERT_EQ(cudaHostAlloc(&host, 4, cudaHostAllocMapped), cudaSuccess);
  *host = 5;
  {
    const Queue stream;
    const Array<int> x(1);
    cudaLaunchHostFunc(
        stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }, nullptr);
    ASSERT_EQ(cudaMemcpyAsync(x.data(), host, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
    *host = 6;  // too early to see the 5 again
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(x.values()[0], 6);
  }
  EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
}

TEST_F(DeviceMemory, OfTheHostIsWrittenByKernelsWhereItIsMapped) {
  int *host = nullptr, *mapped = nullptr;
  ASSERT_EQ(cudaHostAlloc(&host, 4, cudaHostAllocMapped), cudaSuccess);
  ASSERT_EQ(cudaHostGetDevicePointer(&mapped, host, 0), cudaSuccess);
  ASSERT_EQ(run(set_to, 1, 1, mapped, 9), cudaSuccess);
  EXPECT_EQ(*host, 9);
  EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
}

TEST_F(DeviceMemory, IsSharedByBlocksOnlyAsFarAsAllowed) {
  const Array<int> x(1);
  cudaLaunchConfig_t config = {.gridDim = 1, .blockDim = 1, .dynamicSmemBytes = 100 * 1024};
  EXPECT_EQ(cudaLaunchKernelEx(&config, set_to, x.data(), 1), cudaErrorInvalidValue);
  ASSERT_EQ(cudaFuncSetAttribute(set_to, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024), cudaSuccess);
  EXPECT_EQ(cudaLaunchKernelEx(&config, set_to, x.data(), 1), cudaSuccess);
  EXPECT_EQ(cudaFuncSetAttribute(set_to, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 * 1024),
            cudaErrorInvalidValue);
  EXPECT_EQ(run(set_to, 0, 1, x.data(), 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(run(set_to, 1, 1025, x.data(), 1), cudaErrorInvalidConfiguration);
}

}  // namespace
}  // namespace rehearsal
