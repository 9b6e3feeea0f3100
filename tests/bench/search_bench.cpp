// What a search costs: plans built and simulated, and bounds, per second and core. Rates are of CPU time, so that other
// load counts less. The goals: 200 plans a second of 32 layers, 100 of 96, 50,000 bounds.
#include <benchmark/benchmark.h>

#include "sim/planner/search.hpp"

namespace foreshard::sim::planner {
namespace {

constexpr int gpus = 512;

plan::Settings llama(std::int64_t layers) {
  const model::LlamaConfig config{.layers = layers,
                                  .width = 8192,
                                  .heads = 64,
                                  .vocab_size = 128256,
                                  .max_seq_len = 8192,
                                  .ffn_width = 28672,
                                  .kv_heads = 8};
  return {.model = config, .batch = {2, 8192}, .mesh = {1, 1, gpus}, .schedule = {}, .partial = {}};
}

/// Different plans of one graph, as a search goes through them.
void simulate_plans(benchmark::State& state) {
  const plan::Settings base = llama(state.range(0));
  const Cluster cluster = read_cluster("aws-p5");
  TrainingGraphs graphs(base);
  OwnRuntime runtime(base, cluster, graphs);
  Point point{.gpus = gpus, .shard_degree = gpus, .parameters = DType::bf16};
  point.recompute = static_cast<plan::Recompute::Mode>(state.range(1));
  point.micro_batches = static_cast<int>(state.range(2));
  for (auto _ : state) {
    point.prefetch = static_cast<plan::BackwardPrefetch>(state.iterations() % 3);
    benchmark::DoNotOptimize(runtime.evaluate(point).step_s);
  }
  state.counters["plans/s"] = benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

/// All bounds of a space, with what they share.
void bound_points(benchmark::State& state) {
  const plan::Settings base = llama(state.range(0));
  const Cluster cluster = read_cluster("aws-p5");
  Config config("bench");
  plan::add_plan_keys(config);
  add_space_keys(config);
  config.add("parallel.world_size", gpus, "");
  const Space space = space_of(read_axes(config, base, cluster.gpus_per_node), 2 * gpus, true);
  for (auto _ : state) {
    Bounds bounds(base, cluster);
    for (const Point& point : space.points) benchmark::DoNotOptimize(bounds.of(point).memory_bytes);
  }
  state.counters["bounds/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(space.points.size()), benchmark::Counter::kIsRate);
}

void simulate_on_world(benchmark::State& state) {
  const plan::Settings base = llama(32);
  const Cluster cluster = read_cluster("aws-p5");
  TrainingGraphs graphs(base);
  OwnRuntime runtime(base, cluster, graphs);
  const int world = static_cast<int>(state.range(0));
  const Point point{.gpus = world, .shard_degree = world, .parameters = DType::bf16};
  for (auto _ : state) benchmark::DoNotOptimize(runtime.evaluate(point).step_s);
}

BENCHMARK(simulate_plans)
    ->ArgNames({"layers", "recompute", "micro_batches"})
    ->Args({32, 0, 1})
    ->Args({32, 2, 1})
    ->Args({80, 2, 1})
    ->Args({80, 2, 4})
    ->Args({96, 0, 1})
    ->Args({96, 2, 1})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(bound_points)->ArgName("layers")->Arg(80)->Unit(benchmark::kMillisecond);
BENCHMARK(simulate_on_world)->ArgName("gpus")->Arg(8)->Arg(512)->Arg(65536)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foreshard::sim::planner
