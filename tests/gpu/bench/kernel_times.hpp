#pragma once
#include <nlohmann/json_fwd.hpp>

#include "device.hpp"

namespace foreshard::gpu_bench {

/// What kernels are measured against, of the same device in the same run: {"copy_bytes_per_s", bytes read and written
/// by a copy within the device, "matmul_flops_per_s", of cuBLASLt's fastest product of bf16 matrices of 8192²}.
nlohmann::json reference_rates(Device& device);

/// Every kernel that is bound by memory, on arrays several times as large as the second-level cache: {"name", "bytes",
/// "median_s", "p10_s", "p90_s"}. Bytes are those that the head of its source counts: each operand read and each result
/// written once, statistics by row included.
nlohmann::json memory_bound_kernels(Device& device);

/// Attention of bf16, forward and backward: {"name", "batch", "seq", "heads", "width", "flops", "median_s", …}. FLOPs
/// are those of causal attention, 2 products forward and 5 backward over half of the pairs. The same again by cuDNN,
/// whose gradient is the deterministic one, where it has a plan within the workspace.
nlohmann::json attention_kernels(Device& device);

}  // namespace foreshard::gpu_bench
