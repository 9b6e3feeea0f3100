#pragma once
#include <cstdint>
#include <string_view>

#include "model/graph.hpp"
#include "plan/plan.hpp"

namespace foreshard::plan {

enum class Strategy : std::uint8_t { full_shard, no_shard };
enum class BackwardPrefetch : std::uint8_t { none, post, pre };
constexpr int unlimited = 1 << 20;

/// How the step is overlapped and how much of it may be in memory at once.
struct ScheduleOptions {
  Strategy strategy = Strategy::full_shard;
  BackwardPrefetch prefetch = BackwardPrefetch::pre;
  int prefetch_depth = 1;    ///< backward, of `pre`
  int forward_prefetch = 1;  ///< units gathered ahead in forward
  int gather_limit = 2;      ///< units gathered at once, the one in use included, the kept root apart
  int reduce_limit = 2;      ///< unsharded gradients waiting for or in reduction
  int micro_batches = 1;
};

// The passes, each a pure function in a file of its own name.
model::Graph differentiate(const model::Graph& forward);
model::Graph lower(const model::Graph& graph);
std::vector<FlatParameter> shard(const model::Graph& graph, int shard_degree);
Plan schedule(const model::Graph& graph, std::vector<FlatParameter> units, const Mesh& mesh,
              const ScheduleOptions& options);
Plan schedule_evaluation(const model::Graph& forward, std::vector<FlatParameter> units, const Mesh& mesh,
                         const ScheduleOptions& options);
void place(Plan& plan);

/// All passes: the training plan of a forward graph.
Plan build_plan(const model::Graph& forward, const Mesh& mesh, const ScheduleOptions& options);

/// Forward only, loss summed over all ranks. Persistent buffers lie where the training plan has them.
Plan build_evaluation_plan(const model::Graph& forward, const Mesh& mesh, const ScheduleOptions& options);

}  // namespace foreshard::plan
