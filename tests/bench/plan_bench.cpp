// Building and simulating the plan of GPT-2 XL. The time must not grow with the number of ranks.
#include <benchmark/benchmark.h>

#include "model/gpt.hpp"
#include "plan/build.hpp"
#include "sim/predict.hpp"

namespace foreshard {
namespace {

model::Graph xl() { return model::build_gpt(model::gpt_preset("gpt2-xl"), {.batch = 1, .seq = 1024}); }

plan::Mesh sharded(const benchmark::State& state) { return {1, 1, static_cast<int>(state.range(0))}; }

void build_and_simulate(benchmark::State& state) {
  const sim::Machine machine = sim::generic_machine(8);
  for (auto _ : state) {
    const plan::Plan plan = plan::build_plan(xl(), sharded(state), {});
    benchmark::DoNotOptimize(sim::predict(plan, machine, {8, 1}).step_time_s);
  }
}

void build_only(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(plan::build_plan(xl(), sharded(state), {}).arena_bytes);
}

void simulate_only(benchmark::State& state) {
  const sim::Machine machine = sim::generic_machine(8);
  const plan::Plan plan = plan::build_plan(xl(), sharded(state), {});
  for (auto _ : state) benchmark::DoNotOptimize(sim::predict(plan, machine, {8, 1}).step_time_s);
}

void simulate_micro_batches(benchmark::State& state) {
  const sim::Machine machine = sim::generic_machine(8);
  plan::ScheduleOptions options;
  options.micro_batches = static_cast<int>(state.range(0));
  const plan::Plan plan = plan::build_plan(xl(), {1, 1, 512}, options);
  for (auto _ : state) benchmark::DoNotOptimize(sim::predict(plan, machine, {8, 1}).step_time_s);
}

BENCHMARK(build_and_simulate)->Arg(8)->Arg(512)->Arg(65536)->Unit(benchmark::kMillisecond);
BENCHMARK(build_only)->Arg(8)->Arg(512)->Arg(65536)->Unit(benchmark::kMillisecond);
BENCHMARK(simulate_only)->Arg(8)->Arg(512)->Arg(65536)->Unit(benchmark::kMillisecond);
BENCHMARK(simulate_micro_batches)->Arg(8)->Arg(100000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foreshard
