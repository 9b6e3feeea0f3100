#pragma once
#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"
#include "combinations.hpp"
#include "engine/cuda_engine.hpp"
#include "local_run.hpp"

namespace foreshard::parity {

/// A run of one rank on the CUDA device of this machine, in f32 or mixed.
inline RunSetup on_device(RunSetup setup, const engine::CudaOptions& options = {}) {
  setup.dtype = DType::f32;
  setup.settings = setup.settings.on_cuda();
  setup.engine = [options] { return engine::on_cuda(options); };
  return setup;
}

/// Why no engine can be made; empty: one can.
inline std::string missing_for_cuda() {
  try {
    const auto ranks = comm::make_local(1);
    engine::on_cuda({})({.mesh = {}, .communicator = *ranks[0], .device_bytes = 4096});
    return "";
  } catch (const InputError& missing) {
    return missing.what();
  }
}

/// Tests that need a device are skipped where there is none.
class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string missing = missing_for_cuda();
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
};

}  // namespace foreshard::parity
