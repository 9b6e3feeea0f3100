#pragma once
#include <cstdint>
#include <span>

#include "model/graph.hpp"
#include "plan/plan.hpp"

namespace foreshard::train {

/// Element `index` of a parameter before training: depends on (seed, parameter name, index) alone, so each rank fills
/// its own shard and no rank ever holds the whole model.
double initial_value(const model::Parameter& parameter, std::uint64_t seed, std::int64_t index);

/// Fills the shard that `rank` owns of one unit. `shard` holds shard_elements of the plan's
/// master type, to which values are rounded once; padding becomes 0.
void fill_initial_shard(const model::Graph& graph, const plan::Plan& plan, std::uint32_t unit, int rank,
                        std::uint64_t seed, void* shard);

}  // namespace foreshard::train
