#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/graph.hpp"
#include "plan/leave_out.hpp"
#include "plan/plan.hpp"
#include "plan/wrap.hpp"

namespace foreshard::plan {

enum class BackwardPrefetch : std::uint8_t { none, post, pre };
constexpr int unlimited = 1 << 20;

/// What micro-batches before the last do with their gradients: all reductions; only the reduce-scatter, so that
/// replicas sum once a step; or none, so that unsharded gradients add up.
enum class Accumulation : std::uint8_t { reduce, reduce_scatter, no_sync };

/// The types of a unit's numbers; none: the model's, in which gradients and moments are kept.
struct Precision {
  std::optional<DType> parameters;  ///< gathered parameters, and what is computed with them
  std::optional<DType> reduction;   ///< gradients until and while they are reduced; sums are made in f32 at least
  std::optional<DType> output;      ///< what other units get from it; none: the type it computes in
};

/// What forward does not keep for backward but backward computes again.
struct Recompute {
  enum class Mode : std::uint8_t { none, selective, full };
  Mode mode = Mode::none;
  std::vector<OpKind> kinds{OpKind::attention};  ///< of `selective`
  int every = 1;                                 ///< only in every n-th unit, the first one included; never in the root
};

/// Which shards lie in host memory between their uses.
struct Offload {
  bool parameters = false;  ///< fetched for each gather and each update
  bool gradients = false;   ///< a reduced shard leaves the device at once; sums over micro-batches are made in the host
  bool optimizer = false;   ///< moments; fetched for each update
};

/// How the step is overlapped and how much of it may be in memory at once.
struct ScheduleOptions {
  Wrap wrap;
  LeftOut left_out;
  Keep keep = Keep::visit;
  std::vector<Keep> keep_of_unit;  ///< by unit, instead of `keep`; may be shorter than there are units. `build_plan`
                                   ///< fills it where `wrap` has overrides.
  Accumulation accumulation = Accumulation::reduce;
  BackwardPrefetch prefetch = BackwardPrefetch::pre;
  int prefetch_depth = 1;                       ///< backward, of `pre`
  int forward_prefetch = 1;                     ///< units gathered ahead in forward
  int gather_limit = 2;                         ///< units gathered at once, the one in use included, kept ones apart
  std::int64_t gather_limit_bytes = INT64_MAX;  ///< the same in bytes; one unit is always allowed
  int reduce_limit = 2;                         ///< unsharded gradients waiting for or in reduction
  int micro_batches = 1;
  Recompute recompute;
  Offload offload;
  Precision precision;
  std::vector<Precision> precision_of_unit;  ///< by unit, instead of `precision`; may be shorter than there are units
  std::optional<DType> master;               ///< type in which shards of parameters are kept and updated, and all units
                                             ///< gathered; none: kept in the model's
  std::int64_t workspace_bytes = 0;          ///< of the device's arena, for kernels of the compute lane
  OpKind update = OpKind::adamw;             ///< the optimizer, by the kind of its ops
  float norm_power = 2;                      ///< which norm of the gradient: 1, 2, 3 or infinity
};

inline const Precision& precision_of(const ScheduleOptions& options, UnitId unit) {
  return unit.value < options.precision_of_unit.size() ? options.precision_of_unit[unit.value] : options.precision;
}

/// How long `unit` is kept, the root apart.
inline Keep keep_of(const ScheduleOptions& options, UnitId unit) {
  return unit.value < options.keep_of_unit.size() ? options.keep_of_unit[unit.value] : options.keep;
}

// The passes, each a pure function in a file of its own name.
model::Graph set_types(const model::Graph& forward, const Mesh& mesh, const ScheduleOptions& options);
model::Graph differentiate(const model::Graph& forward);
model::Graph recompute(const model::Graph& differentiated, const Recompute& what);
model::Graph lower(const model::Graph& graph);
model::Graph dequantise(const model::Graph& graph);  // packed weights become words, before each use the weight again
std::vector<FlatParameter> shard(const model::Graph& graph, int shard_degree);
Plan schedule(const model::Graph& graph, std::vector<FlatParameter> units, const Mesh& mesh,
              const ScheduleOptions& options);
Plan schedule_evaluation(const model::Graph& forward, std::vector<FlatParameter> units, const Mesh& mesh,
                         const ScheduleOptions& options);
void place(Plan& plan);

/// The passes before sharding. The result depends on the mesh only in whether there is more than one rank, and not on
/// how gathers, reductions and updates are scheduled or offloaded: plans that differ in nothing else share it.
model::Graph build_training_graph(const model::Graph& forward, const Mesh& mesh, const ScheduleOptions& options);

/// The passes from sharding on, of such a graph.
Plan build_plan_of(const model::Graph& training, const Mesh& mesh, const ScheduleOptions& options);

/// All passes: the training plan of a forward graph.
Plan build_plan(const model::Graph& forward, const Mesh& mesh, const ScheduleOptions& options);

/// Forward only, loss summed over all ranks. Persistent buffers lie where the training plan has them.
Plan build_evaluation_plan(const model::Graph& forward, const Mesh& mesh, const ScheduleOptions& options);

}  // namespace foreshard::plan
