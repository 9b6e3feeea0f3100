#include "sim/flop_conventions.hpp"

#include <algorithm>
#include <array>

#include "model/attention_pairs.hpp"

namespace foreshard::sim {
namespace {

constexpr std::array<std::string_view, 8> names{"6N",          "8N",          "palm",     "torchtitan",
                                                "causal_half", "llm_foundry", "products", "hardware"};

double real(std::int64_t value) { return static_cast<double>(value); }

bool same_bytes(const plan::Operand& a, const plan::Operand& b) {
  return a.buffer == b.buffer && a.offset_bytes == b.offset_bytes && a.size_bytes == b.size_bytes;
}

bool is_forward(const plan::Op& op, plan::OpKind kind) { return op.kind == kind && op.phase == plan::Phase::forward; }

/// A tied table is one weight that embedding and head both read.
bool is_tied(const plan::Plan& plan, std::span<const plan::Op> ops, const plan::Operand& table) {
  return std::ranges::any_of(ops, [&](const plan::Op& op) {
    return is_forward(op, plan::OpKind::linear) && same_bytes(plan.inputs(op)[1], table);
  });
}

void add(FlopBasis& basis, const plan::Plan& plan, std::span<const plan::Op> ops, const plan::Op& op) {
  const plan::Sizes& s = op.sizes;
  if (is_forward(op, plan::OpKind::linear)) basis.product_weights += real(s.cols * s.inner);
  if (is_forward(op, plan::OpKind::attention))
    basis.attention_widths += real(s.heads * s.inner * model::attended_length(s.seq, s.rows));
  if (is_forward(op, plan::OpKind::full_attention) || is_forward(op, plan::OpKind::reattention))
    basis.attention_widths += real(s.heads * s.inner * s.rows);
  if (is_forward(op, plan::OpKind::embedding) && !is_tied(plan, ops, plan.inputs(op)[1]))
    basis.input_tables += real(s.inner * s.cols);
}

}  // namespace

FlopBasis flop_basis(const plan::Plan& plan) {
  FlopBasis basis{.parameters = real(plan.parameters), .tokens = real(plan.micro_batch_tokens) * plan.micro_batches};
  const auto ops = plan.ops_of(plan.segments.front());
  for (const plan::Op& op : ops) add(basis, plan, ops, op);
  double products = 0;
  for (const plan::Op& op : ops)
    if (op.kind == plan::OpKind::linear) products += real(op.sizes.cols * op.sizes.inner);
  for (const plan::Op& op : ops)
    if (op.kind == plan::OpKind::linear_input_grad || op.kind == plan::OpKind::linear_weight_grad)
      basis.gradient_weights += real(op.sizes.cols * op.sizes.inner);
  basis.recomputes = products > 1.5 * basis.product_weights;
  return basis;
}

std::string_view name_of(FlopConvention convention) { return names[static_cast<std::size_t>(convention)]; }

std::vector<FlopConvention> all_flop_conventions() {
  std::vector<FlopConvention> all;
  for (std::size_t i = 0; i < names.size(); ++i) all.push_back(static_cast<FlopConvention>(i));
  return all;
}

double flops_per_token(const FlopBasis& b, FlopConvention convention) {
  switch (convention) {
    case FlopConvention::six_n:
      return 6 * b.parameters;
    case FlopConvention::eight_n:
      return 8 * b.parameters;
    case FlopConvention::palm:
      return 6 * b.parameters + 12 * b.attention_widths;
    case FlopConvention::torchtitan:
      return 6 * (b.parameters - b.input_tables) + 12 * b.attention_widths;
    case FlopConvention::causal_half:
      return 6 * (b.parameters - b.input_tables) + 6 * b.attention_widths;
    case FlopConvention::llm_foundry:
      return 3 * (2 * b.parameters + 4 * b.attention_widths);
    case FlopConvention::products:
      return 2 * (b.product_weights + b.gradient_weights) + 12 * b.attention_widths;
    case FlopConvention::hardware:
      break;
  }
  const double again = 2 * b.product_weights + 4 * b.attention_widths;
  return flops_per_token(b, FlopConvention::products) + (b.recomputes ? again : 0);
}

double megatron_flops(double sequences, double seq, double layers, double width, double vocabulary, bool recompute) {
  return (recompute ? 96 : 72) * sequences * seq * layers * width * width *
         (1 + seq / (6 * width) + vocabulary / (16 * layers * width));
}

double flops_utilization(double flops, double seconds, double peak_flops_per_s) {
  return flops / seconds / peak_flops_per_s;
}

}  // namespace foreshard::sim
