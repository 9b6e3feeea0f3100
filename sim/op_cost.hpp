#pragma once
#include <set>
#include <string>
#include <unordered_map>

#include "plan/plan.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/machine.hpp"
#include "sim/virtual_executor.hpp"

namespace foreshard::sim {

/// How ranks are laid onto nodes.
struct Layout {
  int ranks_per_node = 1;
  int threads = 1;  ///< of each rank's compute team
};

/// The demands of a plan's ops on a machine. Equal ops are looked up once.
class OpCost {
 public:
  /// Both must outlive this.
  OpCost(const plan::Plan& plan, const Machine& machine, const Layout& layout);

  /// A kernel on the compute lane uses the compute team, whose efficiency covers what its threads take from each other,
  /// on another lane one thread; other ranks of the node keep other cores busy. Where a rank has less than a core, the
  /// measured time of a collective includes the waiting for the others' turns, so it is scaled by that part: it takes
  /// the measured time when it runs alone. Across nodes a collective fills the network for part of its time, and keeps
  /// a core busy for what it copies, adds, sends and receives; beside compute its thread must wait for the core again
  /// and again, so transfers are slower than alone.
  Demand operator()(const plan::Op& op);

  /// This rank's part of its node: cores / ranks.
  double cores_per_rank() const;

  /// Where the numbers come from that were used so far.
  const std::set<std::string>& sources() const { return sources_; }

 private:
  struct Key {
    plan::OpKind kind;
    plan::GroupKind group;
    bool accumulate;
    DType dtype;
    Sizes sizes;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  Demand estimate(const plan::Op& op);
  Demand kernel(const plan::Op& op);
  Demand collective(const plan::Op& op);

  const plan::Plan& plan_;
  const Machine& machine_;
  Layout layout_;
  std::unordered_map<Key, Demand, KeyHash> known_;
  std::set<std::string> sources_;
};

/// For tables of ops by their sizes and `rest`.
std::size_t hash_of(const Sizes& sizes, std::uint64_t rest);

/// Ranks of a shard group are neighbours, ranks of a replica group are a shard group apart.
cost::Members members_of(const plan::Mesh& mesh, plan::GroupKind group, int ranks_per_node);

/// The type of the numbers an op works on, tokens and counts apart: of what it reads, or else writes; of an update that
/// of the parameters.
DType type_of(const plan::Plan& plan, const plan::Op& op);

}  // namespace foreshard::sim
