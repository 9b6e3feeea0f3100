// Without a device every test is skipped, and the reason is printed.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

namespace {

class NeedsDevice : public testing::Environment {
 public:
  void SetUp() override {
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices == 0)
      GTEST_SKIP() << "no CUDA device is visible (" << cudaGetErrorString(error) << "): check nvidia-smi";
  }
};

testing::Environment* const environment = testing::AddGlobalTestEnvironment(new NeedsDevice);

}  // namespace
