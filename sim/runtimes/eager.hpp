#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "sim/runtimes/autograd.hpp"
#include "sim/runtimes/checkpoint.hpp"
#include "sim/runtimes/gpu.hpp"

namespace foreshard::sim::torch {

/// What depends on where the eager operators run.
struct EagerTraits {
  bool in_place_sums = true;    ///< autograd adds a second gradient in place; not with tensor subclasses (fake tensors)
  bool passes_window = false;   ///< attention knows windows itself (FlashAttention), else from a mask (sdpa)
  bool attention_mask = false;  ///< transformers passes sdpa a mask, made for each layer in the compute type
  bool fused_dropout = true;    ///< the fused attention kernel drops (CUDA), else attention with dropout is not fused
  bool attention_like_query = false;  ///< fused attention's result lies as the query does (fake tensors), else by token
  bool byte_dropout = true;           ///< dropout keeps a mask of bytes (CUDA), else factors in the input's type (CPU)
  bool early_stop = true;             ///< recomputation ends with the last saved tensor (PyTorch 2.1 and later)
  bool early_fsdp1 = false;           ///< up to 1.13: copies a gradient to pad it, though there is nothing to pad, and
                                      ///< runs the limiter again before the backward of a unit that was prefetched
  bool early_fsdp2 = false;           ///< up to 2.4: a reduction's input is made on the stream that reduces it
  bool second_denominator = false;    ///< foreach AdamW adds epsilon out of place (up to 2.0)
  bool norm_stats_f32 = true;         ///< LayerNorm keeps mean and rstd in f32 (CUDA), else in the input's type (CPU)
};

/// A batch of products m × k by k × n.
struct Matrices {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
};

/// Attention of so many sequences and heads, of `seq` tokens each.
struct MathAttention {
  std::int64_t sequences = 1, heads = 1, seq = 1, head_width = 1;
  bool dropout = false;
};

/// Which keys queries of the fused kernel see.
struct AttentionMask {
  bool causal = true;       ///< itself and those before it
  std::int64_t window = 0;  ///< of these the last so many; 0: all
  bool from_mask = false;   ///< the mask that it is given says so, and no pair is left out for it
};

/// What is known of an operator that nobody describes.
struct OpaqueWork {
  double forward_flops = 0, backward_flops = 0, part_of_peak = 0.5;
  bool waits = false;                        ///< the host waits until it is done
  std::int64_t results = 1, kept_bytes = 0;  ///< elements of its result; bytes kept for backward, the input included
};

/// PyTorch's eager operators, as far as memory and time see them: each makes its results as new storages by kernels
/// that it issues to the GPU, keeps what its backward needs, and frees temporaries where the Python code or the kernel
/// does. Sizes are numbers of elements; what an operator saves and which gradients it makes follow PyTorch's
/// derivatives.yaml, checked on its dispatcher's calls.
class Eager {
 public:
  Eager(LiveBytes& live, const EagerTraits& traits, Gpu* gpu = nullptr)
      : traits_(traits), live_(live), gpu_(gpu ? *gpu : idle_), autograd_(live, traits.in_place_sums, gpu_) {}

  Storage empty(std::int64_t elements, DType type) const { return {live_, elements * size_bytes(type)}; }
  Storage empty_bytes(std::int64_t bytes) const { return {live_, bytes}; }
  /// A result like `x`.
  Storage like(const Tensor& x) const { return empty(x.elements, x.type); }
  const EagerTraits& traits() const { return traits_; }
  LiveBytes& live() const { return live_; }
  /// On which the operators run: one on which nothing takes time, unless there is one.
  Gpu& gpu() const { return gpu_; }
  Autograd& autograd() { return autograd_; }

  /// `run` under checkpointing: in backward it runs again for what it saved. It is copied, with all that it captured.
  template <typename Run>
  auto checkpointed(Run run) {
    auto region = std::make_shared<Checkpoint>(traits_.early_stop);
    region->again = [this, run, in = std::weak_ptr(region)] { within(in.lock(), run); };
    return within(region, run);
  }

  // Operators, in alphabetical order of PyTorch's names.
  Tensor add(const Tensor& a, const Tensor& b);  ///< b may be broadcast over a
  /// a·b for each of a batch, which lie as matrices (else `contiguous` first).
  Tensor bmm(const Tensor& a, const Tensor& b, const Matrices& shape);
  Tensor cat(const std::vector<Tensor>& parts);
  Tensor contiguous(const Tensor& x);  ///< a copy; its gradient passes through
  Tensor embedding(const Storage& indices, const Tensor& table, std::int64_t elements);  ///< of the result
  Tensor convolution(const Storage& x, const Tensor& weight, const Tensor& bias, std::int64_t elements);
  Tensor dropout(const Tensor& x);                        ///< with a probability above 0
  Tensor expand(const Tensor& x, std::int64_t elements);  ///< a view; its gradient is summed
  Tensor gelu(const Tensor& x);
  Tensor layer_norm(const Tensor& x, const Tensor& gain, const std::optional<Tensor>& bias);
  /// x·weight (+ bias): rows × in, in × out. `bias` may be absent.
  Tensor linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias, std::int64_t rows);
  Tensor masked_fill(const Tensor& x, const Storage& mask);
  Tensor multiply(const Tensor& a, const Tensor& b);                 ///< both differentiable
  Tensor multiply_constant(const Tensor& x, const Storage& other);   ///< by a tensor without gradient
  Tensor multiply_broadcast(const Tensor& x, const Tensor& factor);  ///< factor has fewer elements than x
  Tensor multiply_promoted(const Tensor& x, const Tensor& factor);   ///< the same in factor's type, which may be wider
  Tensor rows_mean(const Tensor& x, std::int64_t rows);
  Tensor opaque(const Tensor& x, const Tensor& weight, const OpaqueWork& work);
  Tensor pow(const Tensor& x);
  Tensor relu(const Tensor& x);
  Tensor rsqrt(const Tensor& x);
  Tensor scale(const Tensor& x);  ///< by a number
  Tensor shift(const Tensor& x);  ///< by a number
  Tensor silu(const Tensor& x);
  Tensor slice(const Tensor& x, std::int64_t elements);  ///< a view of part of x; its gradient is as large as x
  Tensor softmax(const Tensor& x);
  Tensor tanh(const Tensor& x);
  Tensor where(const Storage& condition, const Tensor& x);  ///< x or a number
  Tensor to(const Tensor& x, DType type);                   ///< x itself where it has that type
  /// Attention with fused kernel, over sequences of `seq`: saves operands, mask, result and one f32 log-sum-exp for
  /// each row of each head.
  Tensor sdpa(const Tensor& q, const Tensor& k, const Tensor& v, const Storage& mask, std::int64_t rows,
              std::int64_t seq, const AttentionMask& seen = {});
  /// The same operator by operator, in f32, with a `bias` that may want a gradient and is broadcast over sequences or
  /// heads; for what the fused kernel has not (a CPU's: dropout, a bias with gradient).
  Tensor sdpa_math(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias, const MathAttention& shape);
  /// The [batch, heads, seq, width] view of a projection; its gradient is copied unless it comes in the projection's
  /// layout.
  Tensor heads(const Tensor& x, bool copies_gradient);
  Tensor rotate_half(const Tensor& x);  ///< cat of the negated second half and the first
  Tensor repeat_heads(const Tensor& x, std::int64_t times);
  std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& elements);
  /// Mean cross entropy over rows, by log_softmax and nll_loss in f32. `targets` i64.
  Tensor cross_entropy(const Tensor& logits, const Storage& targets);

 private:
  template <typename Run>
  auto within(std::shared_ptr<Checkpoint> region, const Run& run) {
    struct Leave {
      std::shared_ptr<Checkpoint>& region;
      ~Leave() { region = nullptr; }
    } leave{region_};
    region_ = std::move(region);
    return run();
  }
  /// Nothing is kept that no gradient needs.
  Saved save(const Storage& storage, bool needed = true) const {
    return region_ && needed ? Saved(region_, storage) : Saved(needed ? storage : Storage{});
  }
  /// `storage` as the result of an operator that saves it, and that turns a gradient into one like x.
  Tensor saves_result(const Storage& storage, const Tensor& x);
  Tensor saves_operand(const Tensor& x);
  Tensor add_bias(const Tensor& scores, const Tensor& bias);  ///< of a narrower type; may be broadcast
  /// The result of an operator: `storage`, its extent, and its node, if one of its inputs wants a gradient.
  Tensor made(const Storage& storage, std::int64_t elements, DType type, std::vector<Edge> next,
              std::function<Gradients(const Gradients&)> backward);
  /// Makes storages like x, by a kernel that moves so many bytes.
  std::function<Storage()> maker(const Tensor& x, std::int64_t moved = 0) const;
  /// The same for the gradient of x, which makes none where x wants none.
  std::function<Storage()> gradient_of(const Tensor& x, std::int64_t moved = 0) const;

  EagerTraits traits_;
  LiveBytes& live_;
  Gpu idle_;
  Gpu& gpu_;
  Autograd autograd_;
  std::shared_ptr<Checkpoint> region_;
};

}  // namespace foreshard::sim::torch
