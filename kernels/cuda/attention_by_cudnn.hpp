#pragma once
#include <map>
#include <memory>
#include <tuple>

#include "kernels/cuda/cudnn/fused_attention.hpp"

namespace foreshard::kernels::cuda {

/// Which shapes of attention run through cuDNN. Plans are made once, and kept where a shape does so no longer.
class AttentionByCudnn {
 public:
  explicit AttentionByCudnn(const Queue& queue) : queue_(queue) {}

  /// As Kernels::set_attention_by_cudnn.
  bool set(const Attention&, DType, bool);

  /// False, and nothing is queued, unless this shape runs through cuDNN and its operands are aligned to 16 bytes.
  bool forward(const Attention&, Const q, Const k, Const v, Const bias, Mut y, Mut log_sum_exp);
  bool backward(const Attention&, Const dy, Const q, Const k, Const v, Const bias, Const y, Const log_sum_exp, Mut dq,
                Mut dk, Mut dv);

 private:
  /// Both layouts of operands; null where there is no plan.
  struct Plans {
    std::unique_ptr<cudnn::FusedAttention> apart, packed;
    bool sought = false, used = false;
  };

  cudnn::FusedAttention* plan_of(const Attention&, Const q, Const k, Const bias);

  Queue queue_;
  std::map<std::tuple<Attention, DType>, Plans> plans_;
};

}  // namespace foreshard::kernels::cuda
