#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "trace/analysis.hpp"
#include "trace/export.hpp"
#include "trace/memory.hpp"
#include "trace/names.hpp"
#include "trace/output_file.hpp"
#include "trace/runs.hpp"

namespace foreshard::trace {
namespace {

using plan::Plan;

constexpr int step_thread = plan::lane_count;  ///< after the lanes

std::vector<Event> selected(const Trace& trace, const Selection& selection, std::uint32_t rank) {
  std::vector<Event> events;
  if (rank < trace.events.size() && selection.has_rank(rank))
    std::ranges::copy_if(trace.events[rank], std::back_inserter(events),
                         [&](const Event& e) { return selection.has_step(e.step); });
  return events;
}

/// Writes the events of one file; keeps what JSON needs between them.
class PerfettoWriter {
 public:
  PerfettoWriter(const Trace& trace, const std::string& path, bool force, std::int64_t base_ns)
      : trace_(trace), file_(path, force), base_ns_(base_ns) {}

  void begin(std::uint32_t first_rank) {
    file_.print("{{\n\"schemaVersion\": 1,\n\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": {},\n",
                trace_.run.time_origin_unix_ns + base_ns_);
    // HTA finds a file's rank by a pattern that wants white space after `"rank":`.
    file_.print("\"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}}},\n", first_rank,
                trace_.run.world_size);
    file_.print("\"foreshard\": {{\"kind\": \"{}\", \"plan_hash\": \"{}\"}},\n\"traceEvents\": [",
                text_of(trace_.run.kind), trace_.plan_hash);
  }

  void rank(std::uint32_t rank, std::span<const Event> events) {
    const auto steps = by_step(events);
    name_tracks(rank);
    for (const StepRow& row : trace_.steps)
      if (row.rank == rank && steps.contains(row.step)) step(row);
    for (const Event& event : events) slice(rank, event);
    for (const auto& [number, of_step] : steps) flows(rank, of_step);
    for (const MemoryPoint& point : memory_timeline(trace_.plan, events)) counter(rank, point);
  }

  void end() {
    file_.write("\n]\n}\n");
    file_.close();
  }

 private:
  void separate() {
    file_.write(first_ ? "\n" : ",\n");
    first_ = false;
  }

  std::string time(std::int64_t time_ns) const { return microseconds(time_ns - base_ns_); }
  static std::string microseconds(std::int64_t ns) {
    const std::int64_t size = ns < 0 ? -ns : ns;
    return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
  }

  void name_track(std::uint32_t rank, int thread, std::string_view name) {
    separate();
    file_.print(R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": "{}"}}}})", rank, thread,
                name);
    separate();
    file_.print(R"({{"ph": "M", "name": "thread_sort_index", "pid": {}, "tid": {}, "args": {{"sort_index": {}}}}})",
                rank, thread, thread == step_thread ? -1 : thread);
  }

  void name_tracks(std::uint32_t rank) {
    const std::string host = rank < trace_.ranks.size() ? " on " + trace_.ranks[rank].host : "";
    const nlohmann::json name = fmt::format("rank {}{} ({})", rank, host, text_of(trace_.run.kind));
    separate();
    file_.print(R"({{"ph": "M", "name": "process_name", "pid": {}, "tid": 0, "args": {{"name": {}}}}})", rank,
                name.dump());
    separate();
    file_.print(R"({{"ph": "M", "name": "process_sort_index", "pid": {0}, "tid": 0, "args": {{"sort_index": {0}}}}})",
                rank);
    name_track(rank, step_thread, "step");
    for (int lane = 0; lane < plan::lane_count; ++lane) name_track(rank, lane, text_of(static_cast<plan::Lane>(lane)));
  }

  void step(const StepRow& row) {
    separate();
    file_.print(
        R"({{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{}", "pid": {}, "tid": {}, "ts": {}, "dur": {}, )"
        R"("args": {{"tokens": {}}}}})",
        row.step, row.rank, step_thread, time(row.start_ns), microseconds(row.duration_ns), row.tokens);
  }

  std::string name_of_op(const plan::Op& op) const {
    const std::string_view prefix = is_communication(op.lane) ? "nccl:" : "";
    return op.unit.valid() ? fmt::format("{}{} {}", prefix, text_of(op.kind), unit_name(trace_.plan, op.unit))
                           : fmt::format("{}{}", prefix, text_of(op.kind));
  }

  void slice(std::uint32_t rank, const Event& event) {
    const plan::Op& op = trace_.plan.ops[event.op];
    separate();
    file_.print(
        R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{"op": {}, )"
        R"("step": {}, "micro_batch": {}, "phase": "{}", "device": {}, "stream": {}, "bytes": {:.0f}, "flops": {:.0f})",
        name_of_op(op), rank, static_cast<int>(op.lane), time(event.start_ns), microseconds(event.duration_ns),
        event.op, event.step, event.micro_batch, text_of(op.phase), local_rank(rank), static_cast<int>(op.lane),
        op.cost.read_bytes + op.cost.written_bytes, op.cost.flops);
    if (is_communication(op.lane)) collective_facts(op, event);
    file_.write("}}");
  }

  void collective_facts(const plan::Op& op, const Event& event) {
    file_.print(
        R"(, "Collective name": "{}", "In msg nelems": {}, "Group size": {}, "dtype": "{}", "Process Group Name": "{}", )"
        R"("received_bytes": {})",
        text_of(op.kind), op.sizes.rows, group_size(op), text_of(trace_.plan.dtype), text_of(op.group),
        event.received_bytes);
  }

  int group_size(const plan::Op& op) const { return trace_.plan.mesh.members(op.group); }

  int local_rank(std::uint32_t rank) const {
    return rank < trace_.ranks.size() ? trace_.ranks[rank].local_rank : static_cast<int>(rank);
  }

  /// Arrows from every collective to the compute that waits for it.
  void flows(std::uint32_t rank, std::span<const Event> events) {
    const StepRuns step = runs_of(trace_.plan, events);
    for (std::size_t run = 0; run < step.runs.size(); ++run)
      for (const Event* event : step.runs[run].events)
        if (event && trace_.plan.ops[event->op].lane == plan::Lane::compute)
          for (const plan::Wait& wait : trace_.plan.waits_of(trace_.plan.ops[event->op]))
            if (const Event* awaited = step.awaited(run, wait)) flow(rank, *awaited, *event);
  }

  void flow(std::uint32_t rank, const Event& from, const Event& to) {
    const plan::Lane lane = trace_.plan.ops[from.op].lane;
    if (!is_communication(lane)) return;
    ++flow_id_;
    separate();
    file_.print(R"({{"ph": "s", "cat": "wait", "name": "wait", "id": {}, "pid": {}, "tid": {}, "ts": {}}})", flow_id_,
                rank, static_cast<int>(lane), time(from.start_ns));
    separate();
    file_.print(R"({{"ph": "f", "bp": "e", "cat": "wait", "name": "wait", "id": {}, "pid": {}, "tid": {}, "ts": {}}})",
                flow_id_, rank, static_cast<int>(plan::Lane::compute), time(to.start_ns));
  }

  void counter(std::uint32_t rank, const MemoryPoint& point) {
    separate();
    file_.print(R"({{"ph": "C", "name": "live bytes", "pid": {}, "tid": 0, "ts": {}, "args": {{)", rank,
                time(point.time_ns));
    for (std::size_t i = 0; i < memory_class_count; ++i)
      file_.print(R"({}"{}": {})", i ? ", " : "", names_of<plan::MemoryClass>()[i], point.bytes[i]);
    file_.write("}}");
  }

  const Trace& trace_;
  OutputFile file_;
  std::int64_t base_ns_;
  std::uint64_t flow_id_ = 0;
  bool first_ = true;
};

struct RankEvents {
  std::uint32_t rank;
  std::vector<Event> events;
};

std::vector<RankEvents> selected_ranks(const Trace& trace, const Selection& selection) {
  std::vector<RankEvents> ranks;
  for (std::uint32_t rank = 0; rank < trace.events.size(); ++rank)
    if (auto events = selected(trace, selection, rank); !events.empty()) ranks.push_back({rank, std::move(events)});
  if (ranks.empty())
    throw InputError(ExitCode::usage,
                     fmt::format("no event of {} is of the steps and ranks asked for; `foreshard-trace info` "
                                 "lists those it has",
                                 trace.path));
  return ranks;
}

/// Start of the first event or step written, so that no time is negative.
std::int64_t first_ns(const Trace& trace, const RankEvents& rank) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const Event& event : rank.events) first = std::min(first, event.start_ns);
  const auto steps = by_step(rank.events);
  for (const StepRow& row : trace.steps)
    if (row.rank == rank.rank && steps.contains(row.step)) first = std::min(first, row.start_ns);
  return first;
}

}  // namespace

void export_perfetto(const Trace& trace, const Selection& selection, const std::string& path, bool force) {
  const std::vector<RankEvents> ranks = selected_ranks(trace, selection);
  std::int64_t base_ns = std::numeric_limits<std::int64_t>::max();
  for (const RankEvents& rank : ranks) base_ns = std::min(base_ns, first_ns(trace, rank));
  PerfettoWriter writer(trace, path, force, base_ns);
  writer.begin(ranks.front().rank);
  for (const RankEvents& rank : ranks) writer.rank(rank.rank, rank.events);
  writer.end();
}

}  // namespace foreshard::trace
