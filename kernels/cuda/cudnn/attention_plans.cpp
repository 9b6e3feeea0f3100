#include "kernels/cuda/cudnn/attention_plans.hpp"

#include <utility>

namespace foreshard::kernels::cuda::cudnn {
namespace {

constexpr std::int64_t workspace_alignment = 256;  ///< bytes

/// Of as many sequences as `o` has.
std::int64_t row_sum_bytes(const Attention& o) {
  const std::int64_t bytes = o.batch * o.heads * o.seq * 4;
  return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}
std::int64_t score_bytes(const Attention& o) { return 2 * o.batch * o.heads * o.seq * o.seq; }

/// A deterministic plan of the gradient, within `most` bytes.
std::optional<Plan> find_backward(const Target& target, const Graph& graph, const Attention& o, std::int64_t most) {
  if (auto plan = find_ordered_plan(graph, target, most)) return plan;
  return score_bytes(o) <= most ? find_plan(graph, target, score_bytes(o), most) : std::nullopt;
}

}  // namespace

std::optional<AttentionPlans> find_plans(const Target& target, const Attention& o, DType type, Layout layout,
                                         std::int64_t workspace_bytes) {
  if (!has_graph(o, type)) return std::nullopt;
  auto forward = find_plan(forward_graph(o, type, layout), target, 0, workspace_bytes);
  if (!forward) return std::nullopt;
  for (std::int64_t parts = 1; parts <= o.batch; ++parts) {
    if (o.batch % parts != 0) continue;
    Attention part = o;
    part.batch /= parts;
    const std::int64_t sums = row_sum_bytes(part);
    auto backward = find_backward(target, backward_graph(part, type, layout), part, workspace_bytes - sums);
    if (backward) return AttentionPlans{std::move(*forward), std::move(*backward), parts, sums};
  }
  return std::nullopt;
}

}  // namespace foreshard::kernels::cuda::cudnn
