#pragma once
#include "kernels/cuda/cudnn/attention_graph.hpp"
#include "kernels/cuda/cudnn/plan.hpp"

namespace foreshard::kernels::cuda::cudnn {

/// Plans of one shape of attention. The gradient is made of one part of the batch after another, of as many sequences
/// at a time as the workspace allows.
struct AttentionPlans {
  Plan forward, backward;
  std::int64_t backward_parts;  ///< batch is a multiple of it
  std::int64_t row_sum_bytes;   ///< of the workspace, before that of the backward plan
};

/// Null where cuDNN has none for this target within `workspace_bytes`, or none of which each run gives the same bits.
/// cuDNN does not say which of its plans do (9.19 notes nothing where blocks of keys add to dq as they come), so those
/// are taken that keep the gradient of scores in memory, 2 · heads · seq² bytes a sequence, and the ordered ones of
/// Blackwell. Throws LibraryError where it refuses an operation of the graph.
std::optional<AttentionPlans> find_plans(const Target&, const Attention&, DType, Layout, std::int64_t workspace_bytes);

}  // namespace foreshard::kernels::cuda::cudnn
