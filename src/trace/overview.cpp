#include "trace/overview.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "trace/memory.hpp"
#include "trace/names.hpp"

namespace foreshard::trace {
namespace {

using Json = nlohmann::ordered_json;

void set_peak(Overview& overview, const Trace& trace) {
  for (const MemoryRow& row : trace.memory) {
    const std::int64_t total = MemoryPoint{row.time_ns, row.bytes}.total();
    if (total <= overview.peak_total_bytes) continue;
    overview.peak_total_bytes = total;
    overview.peak_bytes = row.bytes;
  }
}

double busy_share(const Overview& overview, std::size_t lane) {
  return overview.typical.step_ns > 0 ? overview.typical.lane_busy_ns[lane] / overview.typical.step_ns : 0;
}

std::string steps_text(const Overview& overview) {
  if (overview.steps.empty()) return "none";
  return fmt::format("{} ({} to {})", overview.steps.size(), *overview.steps.begin(), *overview.steps.rbegin());
}

std::string line(const char* name, const std::string& text) { return fmt::format("  {:<22}{}\n", name, text); }

std::string collective_text(const char* name, const CollectiveTotal& total) {
  return line(name, fmt::format("{} per step, payload {}, received {}", total.count,
                                bytes_text(static_cast<std::int64_t>(total.payload_bytes)),
                                bytes_text(static_cast<std::int64_t>(total.received_bytes))));
}

std::string lanes_text(const Overview& overview) {
  std::string text;
  for (std::size_t lane = 0; lane < plan::lane_count; ++lane)
    if (overview.typical.lane_busy_ns[lane] > 0)
      text += line(fmt::format("lane {}", names_of<plan::Lane>()[lane]).c_str(),
                   fmt::format("{:.1f} % busy", 100 * busy_share(overview, lane)));
  return text;
}

std::string memory_text(const Trace& trace, const Overview& overview) {
  std::string text = line("arena", bytes_text(trace.plan.arena_bytes));
  if (overview.peak_total_bytes == 0) return text;
  text += line("live memory, peak", bytes_text(overview.peak_total_bytes));
  for (std::size_t i = 0; i < memory_class_count; ++i)
    if (overview.peak_bytes[i] > 0)
      text += line(fmt::format("  {}", names_of<plan::MemoryClass>()[i]).c_str(), bytes_text(overview.peak_bytes[i]));
  return text;
}

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const CollectiveTotal& total) {
  return {{"count", total.count}, {"payload_bytes", total.payload_bytes}, {"received_bytes", total.received_bytes}};
}

}  // namespace

Overview overview_of(const Trace& trace) {
  Overview overview;
  for (const EventRow& row : trace.rows) {
    overview.steps.insert(row.event.step);
    overview.ranks.insert(row.rank);
  }
  overview.typical = typical_step(trace.plan, trace.events, trace.steps, 1);
  overview.step_time_s = typical_step_s(trace.steps, 1);
  overview.collectives = trace.summary ? trace.summary->collectives : collectives_of(trace.plan);
  set_peak(overview, trace);
  return overview;
}

std::string text_of(const Trace& trace, const Overview& overview) {
  const StepTotals& typical = overview.typical;
  std::string text = trace.path + "\n";
  text += line("kind", std::string(text_of(trace.run.kind)) + (trace.complete ? "" : " (not closed by its run)"));
  text += line("run", fmt::format("{} of {}, foreshard {}", trace.run.run_id.empty() ? "-" : trace.run.run_id,
                                  trace.date, trace.software_version));
  text += line("world size", fmt::format("{} ranks, events of {}", trace.run.world_size, overview.ranks.size()));
  text += line("plan", fmt::format("{}, {} ops, {} units, {} parameters", trace.plan_hash, trace.plan.ops.size(),
                                   trace.plan.units.size(), count_text(trace.plan.parameters)));
  text += line("events", count_text(static_cast<std::int64_t>(trace.rows.size())));
  text += line("steps with events", steps_text(overview));
  if (std::isfinite(overview.step_time_s)) text += line("step time, median", duration_text(overview.step_time_s));
  if (typical.step_ns > 0)
    text += line("exposed communication", fmt::format("{} ({:.1f} %)", duration_text(typical.exposed_ns * 1e-9),
                                                      100 * typical.exposed_ns / typical.step_ns));
  text += lanes_text(overview);
  text += collective_text("all_gather", overview.collectives.all_gather);
  text += collective_text("reduce_scatter", overview.collectives.reduce_scatter);
  text += collective_text("all_reduce", overview.collectives.all_reduce);
  return text + memory_text(trace, overview);
}

Json json_of(const Trace& trace, const Overview& overview) {
  Json json{{"schema", "foreshard-trace-info"},
            {"schema_version", 1},
            {"path", trace.path},
            {"format_version", trace.format_version},
            {"kind", text_of(trace.run.kind)},
            {"complete", trace.complete},
            {"run_id", trace.run.run_id},
            {"date", trace.date},
            {"software_version", trace.software_version},
            {"command_line", trace.run.command_line},
            {"world_size", trace.run.world_size},
            {"plan_hash", trace.plan_hash},
            {"parameters", trace.plan.parameters},
            {"ops", trace.plan.ops.size()},
            {"events", trace.rows.size()},
            {"ranks", overview.ranks},
            {"steps", overview.steps},
            {"step_time_s", finite(overview.step_time_s)},
            {"exposed_comm_s", overview.typical.exposed_ns * 1e-9},
            {"arena_bytes", trace.plan.arena_bytes},
            {"live_peak_bytes", overview.peak_total_bytes}};
  for (std::size_t lane = 0; lane < plan::lane_count; ++lane)
    json["lane_busy_share"][std::string(names_of<plan::Lane>()[lane])] = busy_share(overview, lane);
  for (std::size_t i = 0; i < memory_class_count; ++i)
    json["live_peak_bytes_by_class"][std::string(names_of<plan::MemoryClass>()[i])] = overview.peak_bytes[i];
  json["collectives"] = {{"all_gather", json_of(overview.collectives.all_gather)},
                         {"reduce_scatter", json_of(overview.collectives.reduce_scatter)},
                         {"all_reduce", json_of(overview.collectives.all_reduce)}};
  return json;
}

}  // namespace foreshard::trace
