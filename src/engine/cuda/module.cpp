#include "engine/cuda/executor.hpp"

extern "C" __attribute__((visibility("default"))) foreshard::engine::Engine* foreshard_make_cuda_engine(
    const foreshard::engine::EngineSpec& spec, const foreshard::engine::CudaOptions& options) {
  return new foreshard::engine::cuda::Executor(spec, options);
}
