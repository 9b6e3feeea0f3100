#pragma once
#include "sim/closed_form/step_time.hpp"

namespace foreshard::sim::closed_form {

/// Seconds of the operators of one block, the head and the loss, by their shapes, for one micro-batch on one GPU.
class BlockCompute {
 public:
  BlockCompute(const Step& step, const GpuRates& gpu, const Efficiency& efficiency);

  double products() const;  ///< forward; each of the two products of backward takes the same
  double head() const;      ///< forward
  double attention()
      const;  ///< forward; causal: half of the scores, or those in the window; in a kernel's padded heads
  double attention_backward() const;
  double elementwise() const;  ///< forward: two norms, two sums, the activation, read and written once
  double casts() const;        ///< forward: of products' inputs; backward casts the gradients of their results
  double casts_backward() const;
  double loss() const;  ///< forward and backward
  double forward() const;
  double recomputation() const;  ///< of the part that is computed again
  double backward() const;       ///< with recomputation
  double bytes_per_s() const;    ///< of memory

 private:
  double product(double cols, double inner, double flops_per_s) const;
  double last_product() const;

  const Step& s_;
  const GpuRates& gpu_;
  const Efficiency& e_;
  double tokens_;
};

}  // namespace foreshard::sim::closed_form
