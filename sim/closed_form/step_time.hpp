#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace foreshard::sim::closed_form {

/// What a GPU can do at best, and its part of the network. Bytes and operations per second.
struct GpuRates {
  double product_flops = 0;  ///< of the blocks' matrix products, in the type they are computed in
  double half_flops = 0;     ///< of products of halves: attention, the head
  double memory_bytes = 0;   ///< per second
  int multiprocessors = 1;
  double node_link_bytes = 0;                        ///< to the other GPUs of its node, per second and direction
  double network_bytes = 0;                          ///< its share of its node's network, per second and direction
  double link_latency_s = 0, network_latency_s = 0;  ///< of one hop
};

/// Properties of a GPU generation and of software, as parts of the best rates. profiles/closed_form.json says where
/// each comes from.
struct Efficiency {
  double products = 0.8;            ///< of product_flops, where tiles fill all multiprocessors
  double attention = 0.4;           ///< of half_flops, at long sequences, forward
  double attention_backward = 0.8;  ///< of the forward's rate
  double attention_ramp_s = 600;    ///< sequence at which attention reaches half of its rate
  double memory = 0.85;             ///< of memory_bytes
  double elementwise = 2.2;         ///< traffic over that of fused operators
  double loss_bytes = 28;           ///< traffic a token and vocabulary entry
  double cast_bytes = 0;            ///< traffic of casts to narrower numbers, an operand's element of a product
  double update_bytes = 28;         ///< traffic a parameter of the shard
  double adapter_bytes = 0;         ///< traffic of low-rank adapters, a token and number of the width in each block
  double network = 0.8;             ///< of the links' rates
  double contention = 0.2;          ///< by which compute slows beside a collective
  double jitter = 0.01;             ///< standard deviation of a rank's compute
  double host_s = 0.015;            ///< between two steps
  double issue_s = 0;               ///< host time of a block's forward; its backward takes as much
};

/// A decoder of equal blocks and how its training is spread; tokens are of one micro-batch on one GPU.
struct Step {
  std::int64_t layers = 0, width = 0, heads = 1, kv_heads = 1, ffn_width = 0, vocab_size = 0;
  std::int64_t rows = 1, seq_len = 1, micro_batches = 1;
  std::int64_t attention_head_width = 0;  ///< as the kernel pads it; 0: as it is
  std::int64_t attention_window = 0;      ///< most keys of a query; 0: all before it
  bool gated_mlp = false;
  bool tied_head = true;  ///< one table for tokens and logits
  int gpus = 1, gpus_per_node = 8, shard_degree = 1;
  bool shards_parameters = true, reshards_after_forward = true, shards_gradients = true;
  double gathered_bytes = 2, reduced_bytes = 2;  ///< of an element on the wire
  double gradient_copy_bytes = 0;                ///< moved between a product and its reduction, an unsharded element
  double recomputed = 0;                         ///< part of the blocks
  bool stops_recomputation_early = false;        ///< a block's last product is not computed again
  double trained = 1;             ///< part of the parameters; below 1, products give no gradient of the others
  bool overlaps = true;           ///< communication runs beside compute
  bool overlaps_backward = true;  ///< in backward too; not where blocks are prefetched only after the one before
};

/// Where a step's time goes. Parts overlap, so they do not add up to `step_s`.
struct StepTime {
  double products_s = 0, attention_s = 0, elementwise_s = 0, loss_s = 0, recompute_s = 0, update_s = 0;
  double communication_s = 0, exposed_s = 0;
  double step_s = 0;
};

/// A bound in closed form: each block's compute or its communication, whichever takes longer, in forward and in
/// backward; about 10 µs a call. Parameters that are not sharded are reduced once, in the last micro-batch, and shared
/// out again after the update.
StepTime step_time(const Step& step, const GpuRates& gpu, const Efficiency& efficiency);

/// Parameters of the step's model, tables included once.
double parameters_of(const Step& step);

/// Of one block.
double block_parameters(const Step& step);

}  // namespace foreshard::sim::closed_form
