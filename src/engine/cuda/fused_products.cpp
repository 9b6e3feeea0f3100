#include "engine/cuda/fused_products.hpp"

#include <algorithm>

#include "engine/products.hpp"

namespace foreshard::engine::cuda {
namespace {

using kernels::cuda::Fused;
using plan::Op;
using plan::Operand;
using plan::OpKind;

constexpr std::int64_t alignment_bytes = 16, alignment_cols = 8;

struct Kinds {
  OpKind product, next;
  Fused fused;
};
constexpr Kinds kinds[] = {{OpKind::linear, OpKind::gelu, Fused::gelu},
                           {OpKind::linear_input_grad, OpKind::gelu_backward, Fused::gelu_backward},
                           {OpKind::linear_weight_grad, OpKind::linear_bias_grad, Fused::bias_grad}};

bool is_same(const Operand& a, const Operand& b) {
  return a.buffer == b.buffer && a.offset_bytes == b.offset_bytes && a.size_bytes == b.size_bytes;
}

kernels::cuda::MatmulTypes types_of(const plan::Plan& plan, const Op& op, Fused fused) {
  const bool bias = op.input_count > 2 && plan.inputs(op)[2].present();
  return {plan.inputs(op)[0].dtype, plan.outputs(op)[0].dtype, bias, fused};
}

/// Decides on one pair of ops, of kinds that go together.
class Candidate {
 public:
  Candidate(const plan::Plan& plan, const Op& op, const Op& next, Fused fused)
      : plan_(plan), op_(op), next_(next), fused_(fused) {}

  FusedPair pair() const {
    const bool sums = fused_ == Fused::bias_grad;
    const Operand &made = plan_.outputs(op_)[0], &then = plan_.outputs(next_)[0];
    const Operand& other = fused_ == Fused::gelu ? made : sums ? then : plan_.inputs(next_)[1];
    return {&op_, &next_, {*product_of(op_), types_of(plan_, op_, fused_)}, sums ? made : then, other};
  }

  bool fits() const {
    return next_.wait_count == 0 && !op_.accumulate && !next_.accumulate && belong_together() && has_one_type() &&
           is_aligned();
  }

 private:
  bool belong_together() const {
    const Operand &read = plan_.inputs(next_)[0], &made = plan_.outputs(op_)[0], &then = plan_.outputs(next_)[0];
    switch (fused_) {
      case Fused::gelu:
        return is_same(read, made) && !overlaps_what_is_read(then);
      case Fused::gelu_backward:
        return is_same(read, made) && is_same(then, made);  // in place: nobody else reads what the first alone makes
      default:
        return is_same(read, plan_.inputs(op_)[0]) && then.buffer == made.buffer;  // so it is there when the first is
    }
  }

  std::int64_t begin(const Operand& operand) const {
    return plan_.buffers[operand.buffer.value].offset_bytes + operand.offset_bytes;
  }
  bool overlaps_what_is_read(const Operand& written) const {
    return std::ranges::any_of(plan_.inputs(op_), [&](const Operand& read) {
      return read.present() && begin(read) < begin(written) + written.size_bytes &&
             begin(written) < begin(read) + read.size_bytes;
    });
  }

  bool has_one_type() const {
    const FusedPair pair = this->pair();
    const auto inputs = plan_.inputs(op_);
    return pair.result.dtype == pair.other.dtype && inputs[0].dtype == inputs[1].dtype &&
           (!pair.product.types.bias || inputs[2].dtype == pair.result.dtype);
  }
  bool is_aligned() const {
    const FusedPair pair = this->pair();
    const auto aligned = [&](const Operand& o) { return !o.present() || begin(o) % alignment_bytes == 0; };
    return std::ranges::all_of(plan_.inputs(op_), aligned) && aligned(pair.result) && aligned(pair.other) &&
           (fused_ == Fused::bias_grad || pair.product.matmul.n % alignment_cols == 0);
  }

  const plan::Plan& plan_;
  const Op &op_, &next_;
  Fused fused_;
};

const Kinds* kinds_of(const Op& op, const Op& next) {
  const auto* found =
      std::ranges::find_if(kinds, [&](const Kinds& kind) { return kind.product == op.kind && kind.next == next.kind; });
  return found == std::end(kinds) ? nullptr : found;
}

}  // namespace

std::vector<FusedPair> fused_pairs(const plan::Plan& plan) {
  std::vector<FusedPair> pairs;
  for (const plan::Segment& segment : plan.segments) {
    const Op* before = nullptr;
    for (const Op& op : plan.ops_of(segment)) {
      if (op.lane != plan::Lane::compute) continue;
      if (const Kinds* kind = before ? kinds_of(*before, op) : nullptr)
        if (const Candidate candidate(plan, *before, op, kind->fused); candidate.fits())
          pairs.push_back(candidate.pair());
      before = &op;
    }
  }
  return pairs;
}

std::set<Product> products_of(const plan::Plan& plan) {
  std::set<Product> products;
  for (const Op& op : plan.ops)
    if (const auto matmul = product_of(op)) products.insert({*matmul, types_of(plan, op, Fused::nothing)});
  for (const FusedPair& pair : fused_pairs(plan)) products.insert(pair.product);
  return products;
}

}  // namespace foreshard::engine::cuda
