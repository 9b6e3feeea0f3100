#include "sim/masked_flops.hpp"

#include <fmt/format.h>

#include "model/attention_pairs.hpp"

namespace foreshard::sim {
namespace {

constexpr double least_part_noted = 0.1;

/// Keys that a token is counted with beyond those that it attends to, in the mean.
double masked_length(const plan::Sizes& s) {
  const auto counted = static_cast<double>(model::attended_length(s.seq, s.rows));
  return counted - model::causal_pairs(s.seq, s.rows) / static_cast<double>(s.seq);
}

}  // namespace

double masked_flops(const plan::Plan& plan) {
  double per_token = 0;
  for (const plan::Op& op : plan.ops_of(plan.segments.front()))
    if (op.kind == plan::OpKind::attention && op.phase == plan::Phase::forward)
      per_token += 12.0 * static_cast<double>(op.sizes.heads * op.sizes.inner) * masked_length(op.sizes);
  return per_token * static_cast<double>(plan.micro_batch_tokens) * plan.micro_batches;
}

std::string masked_note(double counted, double masked, double part_of_peak) {
  const double part = masked / counted;
  if (!(part >= least_part_noted)) return "";
  return fmt::format(
      "note: {:.1f} % of palm's count is the masked half of causal attention, which it counts by "
      "definition and kernels skip; without it {:.1f} % of peak\n",
      100 * part, 100 * part_of_peak * (1 - part));
}

}  // namespace foreshard::sim
