#pragma once
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "plan/plan.hpp"
#include "sim/cluster.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/cost/gpu_attention.hpp"
#include "sim/gpu_rates.hpp"
#include "sim/virtual_executor.hpp"

namespace foreshard::sim {

/// The demands of a plan's ops on a cluster of GPUs, by our own runtime: kernels in a full queue, f32 products without
/// tf32, optimizers that read and write their state once. Where such GPUs were measured (`Cluster::measured`), kernels
/// and collectives take what the tables say, and the formula is for what these lack. Equal ops are looked up once.
class GpuOpCost {
 public:
  /// All must outlive this. `compute_factor` lengthens what is computed (cost/stragglers.hpp).
  GpuOpCost(const plan::Plan& plan, const Cluster& cluster, const cost::GpuProfile& profile, double compute_factor);

  /// A kernel fills SMs by its blocks and the memory by its bytes; a collective holds an SM for each channel, fills the
  /// links for part of its time (what as many bytes again would add), and reads and writes memory for each byte that it
  /// moves. What works on host memory (norms and updates of offloaded shards) goes as fast as a node's memory, which
  /// its ranks share.
  Demand operator()(const plan::Op& op);

  const std::set<std::string>& sources() const { return sources_; }

 private:
  struct Key {
    OpKind kind;
    plan::GroupKind group;
    DType dtype;
    Sizes sizes;
    double read_bytes, written_bytes;
    std::int64_t payload_bytes;  ///< of a collective
    bool in_host;
    bool accumulate;  ///< where it was measured apart
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct Kernel {
    double seconds = 0, memory_s = 0;
    std::int64_t blocks = 0;
  };

  Key key_of(const plan::Op& op) const;
  Demand estimate(const plan::Op& op);
  double least_seconds() const;
  std::optional<double> measured_seconds(const plan::Op& op);
  const CollectiveTable* measured_collective(OpKind kind, const cost::Members& members) const;
  Kernel kernel(const plan::Op& op);  ///< by formula
  Kernel product(const plan::Op& op);
  Kernel attention(const plan::Op& op);
  Kernel reattention(const plan::Op& op);
  Kernel opaque(const plan::Op& op);
  Kernel memory_bound(const plan::Op& op);
  double host_link_bytes_per_s(OpKind copy);
  Demand copy(const plan::Op& op);
  Demand in_host(const plan::Op& op);
  bool works_in_host(const plan::Op& op) const;
  Demand collective(const plan::Op& op);
  void add_sources(const cost::Members& members);
  double memory_seconds(double bytes) const;
  double moved_bytes(const plan::Op& op) const;

  const plan::Plan& plan_;
  const Cluster& cluster_;
  const Machine* measured_;
  cost::GpuRates gpu_;
  const cost::GpuProfile& profile_;
  double compute_factor_;
  std::unordered_map<Key, Demand, KeyHash> known_;
  std::set<std::string> sources_;
};

}  // namespace foreshard::sim
