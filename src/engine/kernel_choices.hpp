#pragma once
#include <map>
#include <string>

namespace foreshard::engine {

/// Which of several kernels runs, by what it computes: "matmul bf16 512x768x3072 tb" or "attention bf16
/// 1x1024x12x64 kv12 causal" -> "native" or "widened", or on CUDA devices the algorithm. Where kernels round
/// differently, ranks and resumed runs with the same choices get the same bits.
using KernelChoices = std::map<std::string, std::string>;

}  // namespace foreshard::engine
