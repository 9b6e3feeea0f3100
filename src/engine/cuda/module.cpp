#include "engine/cuda/executor.hpp"
#include "engine/cuda/meter.hpp"

#define FORESHARD_MODULE_GIVES extern "C" __attribute__((visibility("default")))

FORESHARD_MODULE_GIVES foreshard::engine::Engine* foreshard_make_cuda_engine(
    const foreshard::engine::EngineSpec& spec, const foreshard::engine::CudaOptions& options) {
  return new foreshard::engine::cuda::Executor(spec, options);
}

FORESHARD_MODULE_GIVES foreshard::engine::CudaMeter* foreshard_make_cuda_meter(foreshard::comm::Communicator& ranks) {
  return new foreshard::engine::cuda::Meter(ranks);
}
