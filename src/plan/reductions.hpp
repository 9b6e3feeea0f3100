#pragma once
#include <array>
#include <vector>

#include "plan/builder.hpp"
#include "plan/gathers.hpp"
#include "plan/visits.hpp"

namespace foreshard::plan {

/// Issues what becomes of gradients: unsharded ones in buffers of their own, a reduce-scatter over the shard group, an
/// all-reduce over the replicas, into the sharded gradient; of a unit that is not sharded, an all-reduce over all that
/// hold it. Frozen parameters have no part in it; where that lies in host memory, into a
/// buffer from which it is copied there, or added to what earlier micro-batches left.
class Reductions {
 public:
  /// `around` is by visit number; it is the scheduler's, and belongs to the current micro-batch.
  Reductions(Builder& build, const ScheduleOptions& options, std::vector<Around>& around);

  void begin_micro_batch(bool first, bool last);
  void end_micro_batch() { offload_reduced(); }

  /// Adds what the first op of this micro-batch waits for: the one before has reduced everything.
  void add_waits_for_micro_batch_before(std::vector<Wait>& waits) const;

  /// The flat buffer that backward writes a unit's gradients to.
  BufferId gradients_of(UnitId unit) const;

  /// True if backward adds to what earlier micro-batches left there.
  bool adds_to_gradients() const { return !first_ && (!unsharded_ || no_sync()); }

  /// Adds what the first compute op of a backward visit waits for.
  void add_waits(const Visit& visit, std::vector<Wait>& waits) const;

  /// Before the first op that writes a unit's gradient. The elements of it that backward does not write and that have
  /// to be zeroed, since they are summed and squared with the rest: what is idle, and padding.
  std::vector<FlatRange> begin_gradient(UnitId unit);

  /// After the last op that writes the gradient of `unit`, which is in `visit`.
  void reduce(UnitId unit, const Visit& visit, OpId last_compute);

 private:
  const FlatParameter& flat(UnitId unit) const { return build_.plan.units[unit.value]; }
  bool no_sync() const { return options_.accumulation == Accumulation::no_sync; }
  bool shards(UnitId unit) const { return flat(unit).shard_degree > 1; }
  GroupKind holders_of(UnitId unit) const;
  bool replicates() const { return build_.plan.mesh.replicas > 1; }
  bool sums_replicas_once() const { return options_.accumulation == Accumulation::reduce_scatter; }
  bool adds_to_shard() const { return !first_ && !no_sync(); }
  bool offloads() const { return options_.offload.gradients; }
  /// What earlier micro-batches left is summed over the replicas now, with this one's.
  bool completes_sums(UnitId unit) const {
    return shards(unit) && replicates() && sums_replicas_once() && last_ && adds_to_shard();
  }
  bool adds_to_result(UnitId unit) const { return offloads() ? completes_sums(unit) : adds_to_shard(); }
  std::int64_t shard_elements(UnitId unit) const { return flat(unit).shard_of(flat(unit).trainable.padded_elements); }
  std::vector<FlatRange> unwritten(UnitId unit) const;
  BufferId result_of(UnitId unit);
  BufferId scattered_to(UnitId unit);
  DType type_of(UnitId unit, BufferId buffer);
  std::vector<Wait> limited(OpId before, const std::vector<OpId>& next_stage) const;
  void mark_reduced(UnitId unit, OpId end);
  OpId fetch_sums(UnitId unit, OpId before);
  OpId offload(UnitId unit, OpId before);
  OpId offload_reduced();
  OpId scatter(UnitId unit, OpId before);
  OpId sum_replicas(UnitId unit, OpId before);

  /// Of one unit: its gradient before reduction, its shard of the group between reduce-scatter and all-reduce, and its
  /// shard on the way to host memory.
  struct OfUnit {
    BufferId unsharded, scattered, reduced;
    bool begun = false;  ///< in this micro-batch
  };

  Builder& build_;
  const ScheduleOptions& options_;
  std::vector<Around>& around_;
  bool unsharded_;
  std::vector<OfUnit> of_unit_;
  std::vector<OpId> sums_, offloads_;                   // all-reduces and offloads of this micro-batch, in order
  std::array<UnitId, lane_count> last_of_lane_;         // units reduced last, in this micro-batch
  std::array<UnitId, lane_count> last_of_lane_before_;  // in the one before
  bool first_ = true, last_ = true;
  /// A reduction whose result is not yet offloaded.
  struct Reduced {
    UnitId unit;
    OpId end;
  } reduced_;
};

}  // namespace foreshard::plan
