#include "engine/cuda/executor.hpp"
#include "engine/cuda/meter.hpp"
#include "engine/module_build.hpp"

// FORESHARD_COMMIT is defined by cmake/Version.cmake.
#define FORESHARD_MODULE_GIVES extern "C" __attribute__((visibility("default")))

FORESHARD_MODULE_GIVES foreshard::engine::Engine* foreshard_make_cuda_engine(
    const foreshard::engine::EngineSpec& spec, const foreshard::engine::CudaOptions& options) {
  return new foreshard::engine::cuda::Executor(spec, options);
}

FORESHARD_MODULE_GIVES foreshard::engine::CudaMeter* foreshard_make_cuda_meter(foreshard::comm::Communicator& ranks) {
  return new foreshard::engine::cuda::Meter(ranks);
}

FORESHARD_MODULE_GIVES std::uint64_t foreshard_module_layout() { return foreshard::engine::module_layout; }

FORESHARD_MODULE_GIVES const char* foreshard_module_commit() { return FORESHARD_COMMIT; }
