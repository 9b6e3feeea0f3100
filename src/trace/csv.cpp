#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/output_files.hpp"
#include "trace/export.hpp"
#include "trace/names.hpp"
#include "trace/output_file.hpp"

namespace foreshard::trace {
namespace {

std::string file_in(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

bool has_selected_events(const Trace& trace, const Selection& selection) {
  return std::ranges::any_of(trace.rows, [&](const EventRow& row) {
    return selection.has_rank(row.rank) && selection.has_step(row.event.step);
  });
}

void write_events(const Trace& trace, const Selection& selection, const std::string& path, bool force) {
  OutputFile file(path, force);
  file.write("rank,step,micro_batch,lane,op,kind,phase,unit,start_ns,duration_ns,received_bytes,bytes,flops\n");
  for (const EventRow& row : trace.rows) {
    const Event& e = row.event;
    if (!selection.has_rank(row.rank) || !selection.has_step(e.step)) continue;
    file.print("{},{},{},{},{},{},{},{},{},{},{},{},{:.0f}\n", row.rank, e.step, e.micro_batch, text_of(row.lane), e.op,
               text_of(row.kind), text_of(trace.plan.ops[e.op].phase), unit_name(trace.plan, row.unit), e.start_ns,
               e.duration_ns, e.received_bytes, row.bytes, row.flops);
  }
  file.close();
}

void write_steps(const Trace& trace, const Selection& selection, const std::string& path, bool force) {
  OutputFile file(path, force);
  file.write("step,rank,start_ns,duration_ns,loss,grad_norm,tokens\n");
  for (const StepRow& row : trace.steps)
    if (selection.has_rank(row.rank) && selection.has_step(row.step))
      file.print("{},{},{},{},{},{},{}\n", row.step, row.rank, row.start_ns, row.duration_ns, row.loss, row.grad_norm,
                 row.tokens);
  file.close();
}

void write_memory(const Trace& trace, const Selection& selection, const std::string& path, bool force) {
  OutputFile file(path, force);
  file.write("rank,step,time_ns");
  for (const auto name : names_of<plan::MemoryClass>()) file.print(",{}_bytes", name);
  file.write(",arena_touched_bytes,rss_bytes\n");
  for (const MemoryRow& row : trace.memory)
    if (selection.has_rank(row.rank) && selection.has_step(row.step))
      file.print("{},{},{},{},{},{}\n", row.rank, row.step, row.time_ns, fmt::join(row.bytes, ","),
                 row.arena_touched_bytes, row.rss_bytes);
  file.close();
}

void write_ops(const plan::Plan& plan, const std::string& path, bool force) {
  OutputFile file(path, force);
  file.write("op,segment,lane,kind,phase,unit,group,flops,read_bytes,written_bytes,wire_bytes\n");
  for (const plan::Segment& segment : plan.segments)
    for (std::uint32_t i = segment.first_op; i < segment.first_op + segment.op_count; ++i) {
      const plan::Op& op = plan.ops[i];
      file.print("{},{},{},{},{},{},{},{:.0f},{:.0f},{:.0f},{:.0f}\n", i, text_of(segment.name), text_of(op.lane),
                 text_of(op.kind), text_of(op.phase), unit_name(plan, op.unit), text_of(op.group), op.cost.flops,
                 op.cost.read_bytes, op.cost.written_bytes, op.wire_bytes);
    }
  file.close();
}

}  // namespace

void export_csv(const Trace& trace, const Selection& selection, const std::string& path, bool force) {
  if (!has_selected_events(trace, selection))
    throw InputError(ExitCode::usage,
                     fmt::format("no event of {} is of the steps and ranks asked for; `foreshard-trace info` "
                                 "lists those it has",
                                 trace.path));
  if (path.ends_with(".csv")) return write_events(trace, selection, path, force);
  make_folder(path);
  write_events(trace, selection, file_in(path, "events.csv"), force);
  write_steps(trace, selection, file_in(path, "steps.csv"), force);
  write_memory(trace, selection, file_in(path, "memory.csv"), force);
  write_ops(trace.plan, file_in(path, "ops.csv"), force);
}

}  // namespace foreshard::trace
