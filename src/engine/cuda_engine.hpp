#pragma once
#include <chrono>
#include <cstdint>

#include "engine/engine.hpp"
#include "engine/pulse.hpp"

namespace foreshard::engine {

struct CudaOptions {
  bool graphs = true;                              ///< steps that are not traced replay a captured graph
  std::int64_t graph_ops = std::int64_t{1} << 16;  ///< a graph of that many ops ends with its micro-batch
  std::chrono::duration<double> connect_deadline = std::chrono::minutes(2);  ///< for all ranks to join NCCL
  Pulse* pulse = nullptr;  ///< where others see what this rank does; outlives the engine; null: nowhere
};

/// One CUDA device for each rank, with NCCL between them. CUDA and NCCL take some 0.5 s and 800 MB of libraries to
/// load, so they are in a module that only this and `make_cuda_meter` load: beside the program, or in the folder that
/// FORESHARD_MODULE_PATH names. Making an engine throws InputError where the module or a device is missing, and says
/// what to do.
MakeEngine on_cuda(CudaOptions options);

/// What the module gives: `extern "C"` under the name `foreshard_make_cuda_engine`.
using MakeCudaEngine = Engine*(const EngineSpec&, const CudaOptions&);

}  // namespace foreshard::engine
