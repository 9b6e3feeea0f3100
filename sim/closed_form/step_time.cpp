#include "sim/closed_form/step_time.hpp"

#include <algorithm>
#include <cmath>

#include "sim/closed_form/block_compute.hpp"
#include "sim/closed_form/rings.hpp"

namespace foreshard::sim::closed_form {
namespace {

double d(std::int64_t n) { return static_cast<double>(n); }

/// Both in turn, or side by side, when compute slows for as long as collectives move data.
double together(double compute, const Traffic& traffic, bool overlaps, double contention) {
  if (!overlaps) return compute + traffic.seconds;
  return std::max(compute + contention * std::min(traffic.moving_s, compute), traffic.seconds);
}

/// What a micro-batch's blocks wait for.
struct Collectives {
  Traffic gather;        ///< before a block's forward
  Traffic gather_again;  ///< before its backward
  Traffic reduce;        ///< after it
};

Collectives collectives_of(const Step& s, const Rings& rings, bool last) {
  Collectives c;
  if (s.shards_parameters) c.gather = rings.gathering();
  if (s.shards_parameters && s.reshards_after_forward) c.gather_again = c.gather;
  if (s.shards_gradients || last) c.reduce = rings.reduction();
  return c;
}

/// One micro-batch: of the first block the parameters are waited for, of the last one the gradients.
double micro_batch(const Step& s, const BlockCompute& compute, const Efficiency& e, const Collectives& c) {
  const double forward = together(compute.forward(), c.gather, s.overlaps, e.contention);
  const double backward =
      together(compute.backward(), c.gather_again + c.reduce, s.overlaps && s.overlaps_backward, e.contention);
  const double head = (s.trained < 1 ? 2 : 3) * compute.head();
  const double copies = s.shard_degree > 1 ? s.gradient_copy_bytes * s.trained * parameters_of(s) : 0;
  return d(s.layers) * (forward + backward) + head + compute.loss() + c.gather.seconds + c.reduce.seconds +
         copies / compute.bytes_per_s();
}

double alone(const Step& s, const BlockCompute& compute) {
  return d(s.layers) * (compute.forward() + compute.backward()) + 3 * compute.head() + compute.loss();
}

/// The shards' update; parameters that all keep are shared out again.
double update(const Step& s, const BlockCompute& compute, const Efficiency& e, const Rings& rings) {
  const double bytes = e.update_bytes * s.trained * parameters_of(s) / s.shard_degree;
  const double shared = s.shards_parameters ? 0 : d(s.layers) * rings.gathering().seconds;
  return bytes / compute.bytes_per_s() + e.host_s + shared;
}

}  // namespace

double block_parameters(const Step& s) {
  const double kv = 2 * d(s.width) / d(s.heads) * d(s.kv_heads);
  return d(s.width) * (2 * d(s.width) + kv + (s.gated_mlp ? 3 : 2) * d(s.ffn_width));
}

double parameters_of(const Step& s) { return d(s.layers) * block_parameters(s) + d(s.vocab_size * s.width); }

StepTime step_time(const Step& s, const GpuRates& gpu, const Efficiency& e) {
  const BlockCompute compute(s, gpu, e);
  const Rings rings(s, gpu, e);
  const Collectives each = collectives_of(s, rings, false), last = collectives_of(s, rings, true);
  const double count = d(s.micro_batches), layers = d(s.layers);
  const double all = (count - 1) * micro_batch(s, compute, e, each) + micro_batch(s, compute, e, last);
  const double slowest = 1 + e.jitter * std::sqrt(2 * std::log(std::max(1, s.gpus)));

  StepTime time;
  time.products_s = count * 3 * (layers * compute.products() + compute.head());
  time.attention_s = count * layers * (compute.attention() + compute.attention_backward());
  time.elementwise_s = count * 3 * layers * compute.elementwise();
  time.loss_s = count * compute.loss();
  time.recompute_s = count * layers * compute.recomputation();
  time.update_s = update(s, compute, e, rings);
  time.communication_s = layers * (count * (each.gather.seconds + each.gather_again.seconds) +
                                   (count - 1) * each.reduce.seconds + last.reduce.seconds);
  time.step_s = all * slowest + time.update_s;
  time.exposed_s = std::max(0.0, all - count * alone(s, compute));
  return time;
}

}  // namespace foreshard::sim::closed_form
