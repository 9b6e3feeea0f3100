#pragma once
#include "engine/cuda/executor.hpp"
#include "local_run.hpp"
#include "rehearsal/control.hpp"

namespace foreshard::parity {

/// The CUDA engine on a rehearsed device for each rank.
inline engine::MakeEngine rehearsed(const engine::CudaOptions& options = {}) {
  return [options](const engine::EngineSpec& spec) { return std::make_unique<engine::cuda::Executor>(spec, options); };
}

/// The same steps in f32 on as many devices as there are ranks.
inline RunSetup on_rehearsed_devices(RunSetup setup, const engine::CudaOptions& options = {}) {
  rehearsal::reset(setup.settings.mesh.world_size(), std::size_t{64} << 20);
  setup.settings.cuda_workspace_bytes = 1 << 20;
  setup.settings = setup.settings.on_cuda();
  setup.dtype = DType::f32;
  setup.engine = [options] { return rehearsed(options); };
  return setup;
}

inline Outcome run_rehearsed(const RunSetup& setup, const engine::CudaOptions& options = {}) {
  return run(on_rehearsed_devices(setup, options));
}

}  // namespace foreshard::parity
