#include "trace/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "trace/analysis.hpp"
#include "trace/divergence.hpp"
#include "trace/names.hpp"

namespace foreshard::trace {
namespace {

using plan::Phase;

void expect_whole(const Trace& trace) {
  if (trace.steps.empty())
    throw InputError(ExitCode::bad_input, fmt::format("{}: has no steps, so there is nothing to compare", trace.path));
  if (!trace.summary)
    throw InputError(ExitCode::bad_input,
                     fmt::format("{}: was not closed by its run and lacks its totals: expected a trace of "
                                 "a run that ended; `foreshard-trace info` shows what it has",
                                 trace.path));
}

bool is_collective(std::size_t kind) { return plan::is_collective(static_cast<plan::OpKind>(kind)); }

double phase_ns(const StepTotals& totals, Phase phase) { return totals.phase_ns[static_cast<std::size_t>(phase)]; }

std::vector<TimeRow> phase_rows(const StepTotals& predicted, const StepTotals& measured) {
  const auto row = [](const char* name, double predicted_ns, double measured_ns) {
    return TimeRow{.name = name, .predicted_s = predicted_ns * 1e-9, .measured_s = measured_ns * 1e-9};
  };
  return {row("forward", phase_ns(predicted, Phase::forward), phase_ns(measured, Phase::forward)),
          row("backward", phase_ns(predicted, Phase::backward), phase_ns(measured, Phase::backward)),
          row("exposed communication", predicted.exposed_ns, measured.exposed_ns),
          row("update", phase_ns(predicted, Phase::update), phase_ns(measured, Phase::update)),
          row("idle", predicted.idle_ns, measured.idle_ns)};
}

std::vector<TimeRow> kind_rows(const StepTotals& predicted, const StepTotals& measured) {
  std::vector<TimeRow> rows;
  for (std::size_t i = 0; i < op_kind_count; ++i) {
    const KindTotals &p = predicted.kinds[i], &m = measured.kinds[i];
    if (p.count == 0 && m.count == 0) continue;
    rows.push_back({.name = std::string(names_of<plan::OpKind>()[i]),
                    .predicted_s = p.time_ns * 1e-9,
                    .measured_s = m.time_ns * 1e-9,
                    .predicted_count = p.count,
                    .measured_count = m.count,
                    .predicted_bytes = is_collective(i) ? p.received_bytes : p.bytes,
                    .measured_bytes = is_collective(i) ? m.received_bytes : m.bytes});
  }
  std::ranges::stable_sort(rows, std::ranges::greater{}, &TimeRow::measured_s);
  return rows;
}

void add_collective(std::vector<ExactRow>& rows, const char* name, const CollectiveTotal& predicted,
                    const CollectiveTotal& measured) {
  const auto add = [&](const char* what, std::uint64_t p, std::uint64_t m) {
    rows.push_back({fmt::format("{} {}", name, what), static_cast<std::int64_t>(p), static_cast<std::int64_t>(m)});
  };
  add("count", predicted.count, measured.count);
  add("payload bytes", predicted.payload_bytes, measured.payload_bytes);
  add("received bytes", predicted.received_bytes, measured.received_bytes);
}

std::vector<ExactRow> exact_rows(const Summary& predicted, const Summary& measured) {
  std::vector<ExactRow> rows{{"arena bytes", predicted.arena_bytes, measured.arena_bytes},
                             {"process memory (RSS) bytes", predicted.rss_bytes, measured.rss_bytes, false}};
  if (predicted.host_arena_bytes > 0 || measured.host_arena_bytes > 0)
    rows.push_back({"host arena bytes", predicted.host_arena_bytes, measured.host_arena_bytes});
  add_collective(rows, "all_gather", predicted.collectives.all_gather, measured.collectives.all_gather);
  add_collective(rows, "reduce_scatter", predicted.collectives.reduce_scatter, measured.collectives.reduce_scatter);
  add_collective(rows, "all_reduce", predicted.collectives.all_reduce, measured.collectives.all_reduce);
  return rows;
}

std::optional<std::string> divergence_of(const Trace& measured, const Trace& predicted) {
  if (measured.plan_hash == predicted.plan_hash) return {};
  const auto found = first_divergence(measured.plan, predicted.plan, "measured", "predicted");
  return found ? found
               : "the plans' hashes differ, but not their order or memory: were they built by different versions?";
}

}  // namespace

double TimeRow::error() const {
  if (predicted_s == measured_s) return 0;
  return measured_s == 0 ? std::numeric_limits<double>::quiet_NaN() : (predicted_s - measured_s) / measured_s;
}

std::vector<std::string> Comparison::faults() const {
  if (divergence) return {"the plans differ: " + *divergence};
  std::vector<std::string> faults;
  if (!(std::abs(step.error()) <= tolerance))
    faults.push_back(
        fmt::format("step time is off by {:+.1f} %, more than {:.1f} %", 100 * step.error(), 100 * tolerance));
  for (const ExactRow& row : exact)
    if (row.must_be_equal && row.predicted != row.measured)
      faults.push_back(fmt::format("{}: predicted {}, measured {}", row.name, row.predicted, row.measured));
  return faults;
}

Comparison compare(const Trace& measured, const Trace& predicted, double tolerance, int skip_steps) {
  Comparison result{.tolerance = tolerance, .predicted_hash = predicted.plan_hash, .measured_hash = measured.plan_hash};
  result.divergence = divergence_of(measured, predicted);
  if (result.divergence) return result;
  expect_whole(measured);
  expect_whole(predicted);
  const StepTotals p = typical_step(predicted.plan, predicted.events, predicted.steps, skip_steps);
  const StepTotals m = typical_step(measured.plan, measured.events, measured.steps, skip_steps);
  result.step = {.name = "step",
                 .predicted_s = typical_step_s(predicted.steps, skip_steps),
                 .measured_s = typical_step_s(measured.steps, skip_steps)};
  result.phases = phase_rows(p, m);
  result.kinds = kind_rows(p, m);
  result.exact = exact_rows(*predicted.summary, *measured.summary);
  return result;
}

}  // namespace foreshard::trace
