#pragma once
#include <vector>

#include "sim/planner/graph_facts.hpp"
#include "sim/planner/op_times.hpp"
#include "sim/planner/point.hpp"

namespace foreshard::sim::planner {

/// A unit on a mesh, in bytes.
struct UnitSizes {
  double gathered = 0;  ///< whole parameters; 0: its shard is all there is
  double gradient = 0;  ///< unsharded; 0: it has none, or is never unsharded
  double retained = 0;  ///< what the inner group keeps until backward
};

/// A model's units on a mesh, and what sharding them costs: bytes of one rank, seconds of collectives alone.
struct Sharded {
  std::vector<plan::FlatParameter> flat;
  std::vector<UnitSizes> units;
  plan::Mesh mesh;
  DType master = DType::f32;                             ///< of shards of parameters
  bool gathers_units = false;                            ///< some other than the root
  std::int64_t parameter_bytes = 0, gradient_bytes = 0;  ///< of shards
  double gathers_s = 0, regathers_s = 0;                 ///< of units other than the root, in forward and in backward
  double longest_gather_s = 0, longest_regather_s = 0;
  double root_gather_s = 0, root_reduce_s = 0;
  double first_stages_s = 0, longest_first_stage_s = 0;  ///< of the reductions of units other than the root
  double reduces_s = 0, replicates_s = 0;                ///< of all units

  /// Work on shards, by the memory that they are in.
  struct Placed {
    double device_s = 0, host_s = 0;
    void add(const plan::Op& op, DType type, OpTimes& times);
  };
  Placed update;     ///< of all units
  Placed last_norm;  ///< of the root's gradient, if it is reduced last
};

/// Without times.
Sharded shard_on(std::vector<plan::FlatParameter> units, const plan::Mesh& mesh, const plan::ScheduleOptions& options);

/// `update` is the optimizer.
void add_times(Sharded& sharded, const GraphFacts& facts, OpTimes& times, plan::OpKind update);

/// Bytes that are not persistent and all alive at one visit, in some timing, at the worst visit.
double most_alive(const GraphFacts& facts, const Sharded& sharded, const Point& point, bool alike);

}  // namespace foreshard::sim::planner
