#include "kernels/cuda/attention_by_cudnn.hpp"

#include <cstdint>
#include <initializer_list>

namespace foreshard::kernels::cuda {
namespace {

constexpr std::uintptr_t alignment = 16;  ///< bytes, of every operand of a plan

bool aligned(std::initializer_list<const void*> pointers) {
  std::uintptr_t bits = 0;
  for (const void* pointer : pointers) bits |= reinterpret_cast<std::uintptr_t>(pointer);
  return bits % alignment == 0;
}

bool may_be_packed(const Attention& o) { return o.keys() == o.heads; }

}  // namespace

bool AttentionByCudnn::set(const Attention& o, DType type, bool used) {
  Plans& plans = plans_[{o, type}];
  if (used && !plans.sought) {
    plans.sought = true;
    plans.apart = cudnn::find_attention(queue_, o, type, false);
    if (may_be_packed(o)) plans.packed = cudnn::find_attention(queue_, o, type, true);
  }
  plans.used = used && plans.apart && (plans.packed || !may_be_packed(o));
  return plans.used;
}

cudnn::FusedAttention* AttentionByCudnn::plan_of(const Attention& o, const Const q, const Const k, const Const bias) {
  const auto found = plans_.find({o, q.dtype});
  if (found == plans_.end() || !found->second.used || bias.data) return nullptr;
  return (k.data ? found->second.apart : found->second.packed).get();
}

bool AttentionByCudnn::forward(const Attention& o, const Const q, const Const k, const Const v, const Const bias,
                               const Mut y, const Mut log_sum_exp) {
  cudnn::FusedAttention* plan = plan_of(o, q, k, bias);
  if (!plan || !aligned({q.data, k.data, v.data, y.data, log_sum_exp.data})) return false;
  plan->forward(queue_, q, k, v, y, log_sum_exp);
  return true;
}

bool AttentionByCudnn::backward(const Attention& o, const Const dy, const Const q, const Const k, const Const v,
                                const Const bias, const Const y, const Const log_sum_exp, const Mut dq, const Mut dk,
                                const Mut dv) {
  cudnn::FusedAttention* plan = plan_of(o, q, k, bias);
  if (!plan || !aligned({dy.data, q.data, k.data, v.data, y.data, log_sum_exp.data, dq.data, dk.data, dv.data}))
    return false;
  plan->backward(queue_, dy, q, k, v, y, log_sum_exp, dq, dk, dv);
  return true;
}

}  // namespace foreshard::kernels::cuda
