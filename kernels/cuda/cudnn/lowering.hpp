#pragma once
#include "kernels/cuda/cudnn/descriptor.hpp"
#include "kernels/cuda/cudnn/graph.hpp"

namespace foreshard::kernels::cuda::cudnn {

/// A graph as cuDNN's operation graph; a tensor's unique id is its index. `handle` is null for a plan without a device.
Descriptor lowered(const Graph&, cudnnHandle_t handle);

inline constexpr std::int64_t operand_alignment = 16;  ///< bytes, of every tensor in memory

}  // namespace foreshard::kernels::cuda::cudnn
