#pragma once
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend.hpp"

/// The kernels on a CUDA device. Operations are queued on one stream and return at once; pointers are of device memory,
/// or of host memory that is mapped into the device. Same results as `kernels::Backend` says, up to rounding.
namespace foreshard::kernels::cuda {

/// What varies from step to step, in device memory, so that a captured graph can be replayed.
struct Step {
  std::uint64_t dropout_key;
  double learning_rate, beta1, beta2, epsilon, momentum;
  std::int32_t nesterov;
  double loss_scale, max_norm, clip_value;  ///< 0: gradients are not clipped, by norm or by value
  std::int32_t micro_batch;                 ///< advanced on the device at the end of each segment
  std::int32_t fault_micro_batch;           ///< the first one of which the loss was not finite; −1: none
  std::int64_t fault_row;                   ///< its first row of which the log-sum-exp was not finite; −1: none
  std::uint64_t rounding_key;               ///< of kernels::Rounding; its stream is the parameter's rule
  std::int32_t stochastic_rounding;
};
/// What an update needs to know of one parameter, in device memory; `update` counts its updates from 1.
struct Rule {
  double learning_rate_scale, weight_decay;
  std::int64_t update;
};
/// One parameter's elements [at, at + count) of a shard, the index of its rule, and the place of the first of them in
/// the whole parameter, in device memory.
struct Part {
  std::int64_t at, count;
  std::int32_t rule;
  std::int64_t first;
};
enum class Optimizer { adamw, adam, sgd, sgd_momentum, lion };

/// What a product makes besides in the same pass, from its sums before they are rounded, with a second operand `other`.
enum class Fused : std::uint8_t {
  nothing,
  gelu,           ///< other = what the product alone would be; the result is its GELU, in tanh form
  gelu_backward,  ///< the result is the product times the slope of that GELU at `other`
  bias_grad       ///< other[m] = Σ over k of the left operand's [m, k]
};

/// The types of a product; with `bias`, one is added.
struct MatmulTypes {
  DType operands, result;
  bool bias = false;
  Fused fused = Fused::nothing;
  auto operator<=>(const MatmulTypes&) const = default;
};
/// How cuBLASLt makes a product: a plain value that ranks can exchange and hash.
struct Algorithm {
  std::array<std::uint64_t, 8> choice;  ///< the bytes of a cublasLtMatmulAlgo_t
  std::int64_t workspace_bytes;
  bool operator==(const Algorithm&) const = default;
};

class Kernels : public Backend {
 public:
  using Backend::attention;
  using Backend::attention_backward;
  using Backend::cross_entropy;
  using Backend::cross_entropy_backward;
  using Backend::dropout;
  using Backend::matmul;

  /// to = elements [micro_batch·count, (micro_batch + 1)·count) of what is staged for a step: i32, or f32 in any type.
  virtual void load_micro_batch(const Step*, std::int64_t count, Const staged, Mut to) = 0;
  /// With the step's key, and its micro-batch in the upper half of the stream.
  virtual void dropout(const Step*, const Dropout&, Const x, Mut y) = 0;
  /// Notes in the step the first micro-batch whose loss is not finite.
  virtual void cross_entropy(Step*, const Rows&, Const logits, Const targets, Mut loss, Mut log_sum_exp) = 0;
  /// Scaled by the step's loss_scale.
  virtual void cross_entropy_backward(const Step*, const Rows&, Const logits, Const targets, Const log_sum_exp,
                                      Mut dlogits) = 0;
  /// One optimizer step of a shard's parts, of `count` elements in all. The verdict and the gradient's scale follow
  /// from the words of the norm and {loss, tokens} as in engine::StepSums; nothing is written if the verdict is not
  /// finite.
  virtual void update(Optimizer, const Step*, const Rule* rules, const Part* parts, std::int64_t part_count,
                      std::int64_t count, float norm_power, const std::int64_t* norm_words, std::int64_t word_count,
                      const double* loss, Const grad, Mut parameter, Mut first, Mut second) = 0;

  virtual void copy(const void* from, void* to, std::int64_t bytes) = 0;
  virtual void zero(void* to, std::int64_t bytes) = 0;
  virtual void advance(Step*) = 0;  ///< ++micro_batch
  /// Writes `value` to mapped host memory when all that was queued before is done.
  virtual void mark(std::uint64_t* host_mapped, std::uint64_t value) = 0;

  /// A product and what is fused with it. All addresses are multiples of 16 bytes, `other` has the result's type, and n
  /// is a multiple of 8 where it is a matrix. Nothing is accumulated.
  virtual void matmul(const Matmul&, Fused, Const a, Const b, Const bias, Mut c, Mut other) = 0;

  /// Algorithms for this product that fit into the workspace, the likely fastest first.
  virtual std::vector<Algorithm> candidates(const Matmul&, const MatmulTypes&) = 0;
  /// Makes this the algorithm of that product from now on; otherwise it is the first candidate.
  virtual void set_algorithm(const Matmul&, const MatmulTypes&, const Algorithm&) = 0;

  /// From now on attention of this shape and type, without a bias, runs by cuDNN's fused kernels if `by_cudnn`, else by
  /// our own, as at first. Returns which it is: false where cuDNN has no deterministic plan within the workspace, or is
  /// not there. Takes up to seconds the first time; call it while none is captured. Never throws for a shape.
  virtual bool set_attention_by_cudnn(const Attention&, DType, bool by_cudnn) = 0;
  virtual std::size_t cudnn_version() const = 0;  ///< such as 91900; 0 where it is not there
};

struct Options {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;  ///< device memory, aligned to 256 bytes, for cuBLASLt and for partial sums
  std::int64_t workspace_bytes = 0;
};

/// On the current device. An operation whose partial sums do not fit into the workspace throws ContractError.
std::unique_ptr<Kernels> make(const Options&);

}  // namespace foreshard::kernels::cuda
