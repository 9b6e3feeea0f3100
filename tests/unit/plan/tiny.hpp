#pragma once
#include "model/gpt.hpp"
#include "plan/build.hpp"

namespace foreshard::plan {

/// A GPT of four blocks, as small as it gets with all kinds of operators.
inline model::Graph tiny_graph(int layers = 4) {
  return model::build_gpt({.layers = layers, .width = 16, .heads = 2, .vocab_size = 31, .max_seq_len = 8}, {2, 8});
}

inline Plan tiny_plan(const ScheduleOptions& options, int shard_degree = 8, int replicas = 1, int layers = 4) {
  return build_plan(tiny_graph(layers), {replicas, 1, shard_degree}, options);
}

/// Limits out of the way.
inline ScheduleOptions free_options() { return {.gather_limit = unlimited, .reduce_limit = unlimited}; }

}  // namespace foreshard::plan
