#pragma once
#include "sim/planner/space.hpp"

namespace foreshard::sim::planner {

/// What a search of `runtime` goes through where the user says nothing; numbers of GPUs, shard degrees and batches are
/// not among it. FSDP1 prefetches one unit or none, and either limits gathers or does not; FSDP2 has only the number of
/// units that each names to prefetch; DDP reduces in fp32, ZeRO in every micro-batch or none.
Axes usual_axes_of(Runtime runtime, int gpus_per_node);

/// The degrees that keep whole groups in a node, or whole nodes in a group.
std::vector<int> usual_degrees(const std::vector<int>& gpus, int gpus_per_node);

/// Sequences of a micro-batch that divide what some number of GPUs gets of the global batch.
std::vector<std::int64_t> usual_batches(const std::vector<int>& gpus, std::int64_t global_batch);

}  // namespace foreshard::sim::planner
