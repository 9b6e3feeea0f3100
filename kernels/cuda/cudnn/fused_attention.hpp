#pragma once
#include <memory>

#include "kernels/backend.hpp"
#include "kernels/cuda/queue.hpp"

namespace foreshard::kernels::cuda::cudnn {

/// Attention of one shape by one fused kernel of cuDNN each way, in place of our own: the same operands, the same
/// statistics, the same bits on every run. Operations are queued and return at once, allocate nothing and may be
/// captured. They may use the queue's whole workspace.
class FusedAttention {
 public:
  virtual ~FusedAttention() = default;

  /// Operands as of Backend::attention without a bias, all of the type that it was found for.
  virtual void forward(const Queue&, Const q, Const k, Const v, Mut y, Mut log_sum_exp) = 0;
  virtual void backward(const Queue&, Const dy, Const q, Const k, Const v, Const y, Const log_sum_exp, Mut dq, Mut dk,
                        Mut dv) = 0;
};

/// How the current device does attention of this shape by cuDNN, forward and backward; null if it does not: no cuDNN,
/// linear biases, f32, or no deterministic plan that fits into the queue's workspace. With `packed`, q holds queries,
/// keys and values, and dq their gradients, as where k and v are absent. Takes up to seconds. Never throws for a shape.
std::unique_ptr<FusedAttention> find_attention(const Queue&, const Attention&, DType, bool packed);

/// Of the library that runs, such as 91900; 0 where there is none.
std::size_t version();

}  // namespace foreshard::kernels::cuda::cudnn
