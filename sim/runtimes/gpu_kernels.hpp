#pragma once
#include <cstdint>
#include <unordered_map>

#include "base/dtype.hpp"
#include "sim/cluster.hpp"
#include "sim/cost/gpu_attention.hpp"
#include "sim/cost/gpu_gemm.hpp"
#include "sim/gpu_rates.hpp"
#include "sim/network/collective.hpp"

namespace foreshard::sim::torch {

/// How PyTorch was built and is used, as far as time depends on it.
struct Software {
  network::Version nccl;
  cost::AttentionKernel attention = cost::AttentionKernel::fa2;  ///< behind scaled_dot_product_attention
  bool tf32 = false;                 ///< f32 products on tensor cores (torch.set_float32_matmul_precision("high"))
  bool compiled = false;             ///< torch.compile: operators on elements are fused, and issued at less cost
  double step_host_s = 0;            ///< host time of a step besides its operators: data, logging
  bool records_collectives = false;  ///< NCCL's process group records its buffers on its stream (PyTorch up to 2.6)
  bool lazy_loading = true;          ///< of CUDA modules (PyTorch 2.0 and later)
  bool waits_for_step = true;        ///< the loop reads the loss, so that the host waits for the device in each step
  bool varies = true;                ///< ranks vary in speed, and all take the slowest's time (cost/stragglers.hpp)
};

/// A kernel that runs alone: its time, the part of it that its traffic alone would take, and its thread blocks where
/// they decide how well it shares the SMs.
struct Kernel {
  double seconds = 0, memory_s = 0;
  std::int64_t blocks = 0;
};

/// A collective that runs alone, the SMs that it holds and the part of the memory's bandwidth that it fills.
struct Transfer {
  double seconds = 0, memory_part = 0;
  int sms = 0;
};

/// Who takes part: all-reduces are over replicas where there are any, all else is over the neighbours that share a
/// model.
network::Group group_of(const Cluster& cluster, int shard_ranks, int replicas, model::OpKind kind);

/// Times of kernels and collectives on a cluster's GPUs by sim/cost and sim/network; equal ones are looked up once.
class GpuKernels {
 public:
  /// `cluster` must outlive this. Of `ranks` in all, groups of `shard_ranks` neighbours share a model.
  GpuKernels(const Cluster& cluster, const Software& software, int shard_ranks, int replicas);

  const Kernel& product(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, DType type);
  const Kernel& attention(const cost::Attention& attention, bool backward);
  /// A kernel that computes at the device's peak and fills its SMs evenly.
  Kernel computes(double flops, DType type) const;
  /// A kernel that moves `bytes`, read and written together.
  Kernel moves(double bytes) const;
  /// `bytes` of the whole buffer; over whom says `group_of`.
  const Transfer& collective(model::OpKind kind, double bytes);

  int sms() const { return gpu_.sms; }
  double compute_factor() const { return compute_factor_; }

 private:
  struct Key {
    std::int64_t a = 0, b = 0, c = 0, d = 0, e = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  double memory_seconds(double bytes) const;

  const Cluster& cluster_;
  Software software_;
  const cost::GpuProfile& profile_;
  cost::GpuRates gpu_;
  int shard_ranks_, replicas_;
  double compute_factor_ = 1;
  std::unordered_map<Key, Kernel, KeyHash> products_, attentions_;
  std::unordered_map<Key, Transfer, KeyHash> transfers_;
};

}  // namespace foreshard::sim::torch
