#pragma once
#include <gtest/gtest.h>

#include "rehearsal/control.hpp"
#include "rehearsal/kernels/device_array.hpp"

namespace foreshard::kernels::cuda {

/// The kernels on a stream of their own. No kernel may have done anything that a device would not allow.
struct OnStream : testing::Test {
  explicit OnStream(std::int64_t workspace_bytes = 1 << 20) : workspace(std::vector<char>(workspace_bytes)) {
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0), "cudaStreamCreateWithPriority");
    kernels = make({stream, workspace.data(), workspace_bytes});
  }
  ~OnStream() override {
    kernels.reset();
    cudaStreamDestroy(stream);
  }
  void TearDown() override { EXPECT_EQ(rehearsal::reports(), std::vector<std::string>()); }

  cudaStream_t stream = nullptr;
  DeviceArray<char> workspace;
  std::unique_ptr<Kernels> kernels;
};

}  // namespace foreshard::kernels::cuda
