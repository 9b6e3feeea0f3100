#pragma once
#include <string>
#include <vector>

#include "base/config.hpp"
#include "sim/planner/point.hpp"

namespace foreshard::sim::planner {

/// The values that a search goes through, by what they decide.
struct Axes {
  Runtime runtime = Runtime::own;
  std::vector<int> gpus;
  std::vector<Strategy> strategies;
  std::vector<int> shard_degrees;  ///< of hybrid strategies; those that divide the GPUs count
  std::vector<int> reshard;        ///< 0: as the strategy does
  std::vector<std::int64_t> local_batches;
  std::vector<plan::Accumulation> accumulation;
  std::vector<plan::Recompute::Mode> recompute;
  std::vector<int> recompute_every;
  std::vector<std::pair<DType, DType>> precision;  ///< of parameters, of reductions
  std::vector<plan::Offload> offload;
  std::vector<plan::BackwardPrefetch> prefetch;
  std::vector<int> prefetch_depth, forward_prefetch, limit, reduce_limit;
};

/// Declares search.* keys: lists of values separated by commas. A key without a list stands for the value that the user
/// gave the plan's own key, or else for its usual values.
void add_space_keys(Config& config);

/// Which values to go through, for `base`'s model on a cluster with `gpus_per_node`. Throws one InputError(usage) with
/// every value that cannot be read, or that the runtime has not; the latter are left out where it is not searched
/// `alone`.
Axes read_axes(const Config& config, const plan::Settings& base, int gpus_per_node, Runtime runtime = Runtime::own,
               bool alone = true);

/// The plans of a space, each once.
struct Space {
  std::vector<Point> points;
  std::int64_t combinations = 0;      ///< that make sense, before those were left out that are plans of `points` again
  std::vector<std::string> left_out;  ///< values that fit nothing, each with the reason
};

/// Those of several runtimes, one after the other.
Space joined(std::vector<Space> spaces);

/// All combinations of the axes' values that make a step of `global_batch` sequences. `alike`: all units are kept
/// alike, so that `canonical` says which combinations are equal plans.
Space space_of(const Axes& axes, std::int64_t global_batch, bool alike);

}  // namespace foreshard::sim::planner
