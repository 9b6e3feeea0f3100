// What recording and writing a trace costs: nanoseconds per event recorded inside a step, per event written between
// steps, and per flush. Shares of a step follow from events × nanoseconds / step time.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "plan/plan.hpp"
#include "trace/recorder.hpp"
#include "trace/writer.hpp"

namespace {

using foreshard::plan::Lane;
using foreshard::plan::Plan;
using foreshard::trace::Event;
using foreshard::trace::Recorder;
using foreshard::trace::Writer;

constexpr int ops_per_step = 150;  // about what a 6-layer model has

Plan bench_plan() {
  Plan plan;
  plan.unit_names = {"root"};
  plan.units.resize(1);
  for (int i = 0; i < ops_per_step; ++i) {
    foreshard::plan::Op op;
    op.kind = foreshard::plan::OpKind::linear;
    op.unit = {0};
    op.cost = {1e6, 1e5, 1e5};
    plan.ops.push_back(op);
  }
  plan.segments.push_back({.name = foreshard::plan::Segment::Name::only, .first_op = 0, .op_count = ops_per_step});
  return plan;
}

/// Durations that vary as measured ones do, so that compression works as hard as it would.
std::vector<Event> step_events(std::int32_t step, std::int64_t& now_ns) {
  std::vector<Event> events;
  for (std::uint32_t op = 0; op < ops_per_step; ++op) {
    const std::int64_t duration_ns =
        500'000 + static_cast<std::int64_t>((op * 2654435761u + 40503u * static_cast<std::uint32_t>(step)) % 100'003);
    events.push_back({now_ns, duration_ns, op, step, 0, op % 10 ? 0u : 1u << 20});
    now_ns += duration_ns + 1000;
  }
  return events;
}

std::string file_name() {
  return (std::filesystem::temp_directory_path() / fmt::format("foreshard-bench-{}.h5", getpid())).string();
}

void record(benchmark::State& state) {
  Recorder recorder;
  recorder.reserve(ops_per_step);
  for (auto _ : state) {
    for (std::uint32_t op = 0; op < ops_per_step; ++op) recorder.record(Lane::compute, {op, 1, op, 1, 0, 0});
    benchmark::DoNotOptimize(recorder.take());
  }
  state.SetItemsProcessed(state.iterations() * ops_per_step);
  state.counters["s_per_event"] = benchmark::Counter(static_cast<double>(state.iterations() * ops_per_step),
                                                     benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(record);

/// `steps` steps between two flushes.
void append_and_flush(benchmark::State& state) {
  const auto steps = static_cast<std::int32_t>(state.range(0));
  Writer writer(file_name(), {}, bench_plan(), {}, true);
  std::int64_t now_ns = 0;
  std::int32_t step = 0;
  for (auto _ : state) {
    state.PauseTiming();
    std::vector<std::vector<Event>> events;
    for (std::int32_t i = 0; i < steps; ++i) events.push_back(step_events(step++, now_ns));
    state.ResumeTiming();
    for (const auto& of_step : events) writer.append(0, of_step);
    writer.flush();
  }
  writer.close();
  const double events = static_cast<double>(state.iterations()) * steps * ops_per_step;
  state.counters["s_per_event"] = benchmark::Counter(events, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["bytes_per_event"] = static_cast<double>(std::filesystem::file_size(file_name())) / events;
  std::filesystem::remove(file_name());
}
BENCHMARK(append_and_flush)->Arg(1)->Arg(10)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
