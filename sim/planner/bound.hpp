#pragma once
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "sim/planner/visit_memory.hpp"

namespace foreshard::sim::planner {

/// What no plan of a point can do with less of, by formulas, without building it.
struct Bound {
  std::int64_t memory_bytes = 0;  ///< of the device: arena, context, communicators
  double seconds = 0;             ///< of the step
};

/// Bounds on plans of our own runtime, some microseconds each. Not to be shared between threads.
///
/// Memory: state (parameter, gradient and optimizer shards) plus the most that is alive at one visit in some timing
/// that the plan's waits permit: activations, the unit's whole parameters and those that may be gathered ahead, what is
/// kept until backward, the unsharded gradient and the one before it that may still be in reduction.
///
/// Time: the longest of the compute lane behind the root's gather and around its reduction, and of each communication
/// lane, each op as fast as when it runs alone.
class Bounds {
 public:
  /// Both must outlive this.
  Bounds(const plan::Settings& base, const Cluster& cluster);

  Bound of(const Point& point);

  /// cost::slowest_rank_factor of the profile's jitter; computed once for a number of GPUs.
  double slowest_rank_factor(int gpus);

 private:
  using GraphKey = std::tuple<DType, DType, plan::Recompute::Mode, int, bool>;
  using TypeKey = std::tuple<DType, DType, bool>;
  using MeshKey = std::tuple<DType, DType, int, int, int, bool>;

  static GraphKey graph_key(const Point& point);
  const GraphFacts& facts(const Point& point);
  const model::Graph& typed(const Point& point, const plan::Settings& settings);
  const Sharded& sharded(const Point& point);
  double compute_seconds(const Point& point);
  std::int64_t live_bytes(const Point& point);
  double step_seconds(const Point& point);

  const plan::Settings& base_;
  const Cluster& cluster_;
  model::Graph forward_, forward_of_two_;  ///< of one sequence, of two
  std::int64_t sequence_bytes_;            ///< what the device keeps of a sequence of the batch
  std::map<GraphKey, GraphFacts> facts_;
  std::map<TypeKey, model::Graph> typed_;
  std::map<MeshKey, Sharded> sharded_;
  std::map<std::pair<GraphKey, std::int64_t>, double> compute_;
  std::map<int, double> slowest_;
};

}  // namespace foreshard::sim::planner
