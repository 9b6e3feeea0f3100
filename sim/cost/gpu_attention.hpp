#pragma once
#include <cstdint>
#include <string_view>

#include "sim/cost/gpu_profile.hpp"

namespace foreshard::sim::cost {

/// Self-attention of `batch` sequences with `heads` heads of width `head`, elements of `element_bytes`.
struct Attention {
  std::int64_t batch = 1, heads = 1, seq = 0, head = 0;
  bool causal = true;
  std::int64_t element_bytes = 2;
  std::int64_t window = 0;  ///< of causal attention: most keys of a query; 0: all before it
  bool masked = false;      ///< a mask of all pairs is an operand, so that none is left out
};

enum class AttentionKernel { unfused, fa1, triton, fa2, fa3, cudnn };
std::string_view name_of(AttentionKernel kernel);

/// The fused kernel that our own runtime calls: cuDNN's on sm_90 and later, elsewhere of FlashAttention-2's kind.
AttentionKernel own_attention(std::string_view arch);

/// FLOPs as kernels count them: forward 4·batch·heads·seq²·head, half of it if causal, and of that the part whose keys
/// are within the window; backward 2.5 times as much (five matrix products against two). Source: Dao,
/// "FlashAttention-2", arXiv 2307.08691, section 4.1.
double attention_flops(const Attention& attention, bool backward);

/// Time of attention.
///
/// Fused: FLOPs / (part · peak · seq / (seq + half_length)) of the kernel at the nearest known head width and
/// architecture, within a window with the length whose causal attention gives a query as many keys for seq; backward at
/// `attention_backward_part` of that rate; no faster than its operands can be read and written. Unfused: two matrix
/// products (five backward) of all scores, masked or not, at the rate of products, and `bytes_per_score` of traffic for
/// each score (twice backward), besides the operands. `source` receives where the rate comes from, "as …" if it is
/// another architecture's or head's.
double attention_seconds(const GpuProfile& profile, const GpuRates& gpu, const Attention& attention,
                         AttentionKernel kernel, bool backward, Running running, std::string* source = nullptr);

}  // namespace foreshard::sim::cost
