#include "sim/closed_form/step_time.hpp"

#include <algorithm>
#include <cmath>

namespace foreshard::sim::closed_form {
namespace {

constexpr double tile_rows = 128, tile_cols = 256;

double d(std::int64_t n) { return static_cast<double>(n); }

/// Products of one block and the head by their shapes, one element-wise pass and attention, for one micro-batch.
class Compute {
 public:
  Compute(const Step& step, const GpuRates& gpu, const Efficiency& e)
      : s_(step), gpu_(gpu), e_(e), tokens_(d(step.rows * step.seq_len)) {}

  /// Forward and one of the two products of backward take the same.
  double block_products() const {
    const double kv = 2 * d(s_.width) / d(s_.heads) * d(s_.kv_heads);
    const double up = s_.gated_mlp ? 2 : 1;
    return product(d(s_.width) + kv, d(s_.width)) + product(d(s_.width), d(s_.width)) +
           up * product(d(s_.ffn_width), d(s_.width)) + product(d(s_.width), d(s_.ffn_width));
  }
  double last_product() const { return product(d(s_.width), d(s_.ffn_width)); }
  double head_products() const { return product(d(s_.vocab_size), d(s_.width)); }

  /// Causal: half of the scores.
  double attention() const {
    const double flops = 2 * tokens_ * d(s_.seq_len) * d(s_.width);
    const double ramp = d(s_.seq_len) / (d(s_.seq_len) + e_.attention_ramp_s);
    return flops / (gpu_.attention_flops * e_.attention * ramp);
  }

  /// Two norms, two sums, the activation: read and written once, two bytes a number.
  double elementwise() const {
    const double numbers = 2 * 2 * d(s_.width) + 2 * 3 * d(s_.width) + (s_.gated_mlp ? 3 : 2) * d(s_.ffn_width);
    return e_.elementwise * 2 * numbers * tokens_ / bandwidth();
  }

  double loss() const { return e_.loss_bytes * tokens_ * d(s_.vocab_size) / bandwidth(); }
  double bandwidth() const { return gpu_.memory_bytes * e_.memory; }

 private:
  /// Tokens × cols × inner, in whole waves of tiles over all multiprocessors.
  double product(double cols, double inner) const {
    const double tiles = std::ceil(tokens_ / tile_rows) * std::ceil(cols / tile_cols);
    const double waves = std::ceil(tiles / gpu_.multiprocessors) * gpu_.multiprocessors;
    const double filled = 1 + e_.waves * (waves / tiles - 1);
    const double flops = 2 * tokens_ * cols * inner;
    const double bytes = 2 * (tokens_ * inner + inner * cols + tokens_ * cols);
    const double rate = gpu_.product_flops * e_.products * inner / (inner + e_.product_ramp_k);
    return std::max(flops * filled / rate, bytes / bandwidth());
  }

  const Step& s_;
  const GpuRates& gpu_;
  const Efficiency& e_;
  double tokens_;
};

/// Rings over a group of neighbours.
class Network {
 public:
  Network(const Step& step, const GpuRates& gpu, const Efficiency& e) : s_(step), gpu_(gpu), e_(e) {}

  /// An all-gather or reduce-scatter of `bytes` in all over the shard group.
  double sharded(double bytes) const {
    return ring(bytes, s_.shard_degree, std::min(s_.shard_degree, s_.gpus_per_node));
  }

  /// An all-reduce over the replicas, which are a shard group apart.
  double replicated(double bytes) const {
    const int replicas = s_.gpus / s_.shard_degree;
    const int on_node = std::clamp(s_.gpus_per_node / s_.shard_degree, 1, replicas);
    return 2 * ring(bytes, replicas, on_node);
  }

 private:
  /// Of `members`, `on_node` of which share a node: bandwidth of the slowest link, a latency a hop.
  double ring(double bytes, int members, int on_node) const {
    if (members <= 1) return 0;
    const bool across = members > on_node;
    // A ring enters and leaves each node once, over all its network adapters.
    const double rate = across ? std::min(gpu_.node_link_bytes, gpu_.network_bytes * on_node) : gpu_.node_link_bytes;
    const int between = across ? members / on_node : 0;
    const double latency = (members - 1 - between) * gpu_.link_latency_s + between * gpu_.network_latency_s;
    return latency + bytes * (members - 1) / members / (rate * e_.network);
  }

  const Step& s_;
  const GpuRates& gpu_;
  const Efficiency& e_;
};

double block_parameters(const Step& s) {
  const double kv = 2 * d(s.width) / d(s.heads) * d(s.kv_heads);
  return d(s.width) * (2 * d(s.width) + kv + (s.gated_mlp ? 3 : 2) * d(s.ffn_width));
}

/// Both in turn, or side by side, when compute slows for as long as the other lasts.
double together(double compute, double communication, bool overlaps, double contention) {
  if (!overlaps) return compute + communication;
  return std::max(compute + contention * std::min(communication, compute), communication);
}

}  // namespace

double parameters_of(const Step& s) { return d(s.layers) * block_parameters(s) + d(s.vocab_size * s.width); }

StepTime step_time(const Step& s, const GpuRates& gpu, const Efficiency& e) {
  const Compute compute(s, gpu, e);
  const Network network(s, gpu, e);
  const double layers = d(s.layers), count = d(s.micro_batches);
  const double attention_back = 2.5 / e.attention_backward * compute.attention();
  const double forward = std::max(compute.block_products() + compute.attention() + compute.elementwise(), e.issue_s);
  const double again = s.recomputed * (forward - (1 - e.recomputed_part) * compute.last_product());
  const double backward =
      std::max(2 * compute.block_products() + attention_back + 2 * compute.elementwise(), e.issue_s) + again;

  const double unit = block_parameters(s);
  const double gather = s.shards_parameters ? network.sharded(unit * s.gathered_bytes) : 0;
  const bool replicas = s.gpus > s.shard_degree;
  double reduce =
      s.shards_gradients ? network.sharded(unit * s.reduced_bytes) : 2 * network.sharded(unit * s.reduced_bytes);
  if (replicas) reduce += network.replicated(unit * s.reduced_bytes / s.shard_degree);

  const double head = 3 * compute.head_products(), loss = compute.loss();
  const double forward_s = together(forward, gather, s.overlaps, e.contention);
  const double backward_s =
      together(backward, (s.reshards_after_forward ? gather : 0) + reduce, s.overlaps, e.contention);
  const double micro_batch = layers * (forward_s + backward_s) + head + loss + gather + reduce;

  StepTime time;
  time.products_s = count * (3 * layers * compute.block_products() + head);
  time.attention_s = count * layers * (compute.attention() + attention_back);
  time.elementwise_s = count * 3 * layers * compute.elementwise();
  time.loss_s = count * loss;
  time.recompute_s = count * layers * again;
  time.update_s = e.update_bytes * parameters_of(s) / s.shard_degree / compute.bandwidth() + e.host_s;
  time.communication_s = count * layers * ((s.reshards_after_forward ? 2 : 1) * gather + reduce);
  const double alone = count * (layers * (forward + backward) + head + loss);
  const double slowest = 1 + e.jitter * std::sqrt(2 * std::log(std::max(1, s.gpus)));
  time.step_s = count * micro_batch * slowest + time.update_s;
  time.exposed_s = std::max(0.0, count * micro_batch - alone);
  return time;
}

}  // namespace foreshard::sim::closed_form
