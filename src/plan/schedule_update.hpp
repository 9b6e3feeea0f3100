#pragma once
#include "plan/builder.hpp"

namespace foreshard::plan {

/// The segment `update`: gradient norm over all shards, loss over all ranks, the optimizer's update, an op of `kind`,
/// on each shard. Norms are taken in the order in which reductions end, updates in the order in which the next step
/// gathers.
void schedule_update(Builder& build, OpKind kind);

/// Sums {loss, valid tokens} over all ranks, after `after_loss`.
OpId sum_loss(Builder& build, OpId after_loss);

}  // namespace foreshard::plan
