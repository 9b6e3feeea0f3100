#include "trace/event_tables.hpp"

#include <fmt/format.h>

namespace foreshard::trace {

Fields<EventRow> event_fields() {
  Fields<EventRow> f;
  f.add("rank", "1", "rank that ran the op", f.row.rank);
  f.add("lane", "1", "lane it ran on", f.row.lane);
  f.add("kind", "1", "what was computed or moved", f.row.kind);
  f.add("op", "1", "row of /plan/ops", f.row.event.op);
  f.add("unit", "1", "unit served, -1 = none", f.row.unit);
  f.add("step", "1", "optimizer step", f.row.event.step);
  f.add("micro_batch", "1", "micro-batch of the step", f.row.event.micro_batch);
  f.add("start_ns", "ns", "start", f.row.event.start_ns);
  f.add("duration_ns", "ns", "duration", f.row.event.duration_ns);
  f.add("received_bytes", "byte", "received from other ranks", f.row.event.received_bytes);
  f.add("bytes", "byte", "memory read and written", f.row.bytes);
  f.add("flops", "1", "floating-point operations", f.row.flops);
  return f;
}

Fields<Batch> batch_fields() {
  Fields<Batch> f;
  f.add("rank", "1", "rank of all rows of the batch", f.row.rank);
  f.add("first_row", "1", "row of /events", f.row.first_row);
  f.add("row_count", "1", "rows", f.row.row_count);
  return f;
}

Fields<StepRow> step_fields() {
  Fields<StepRow> f;
  f.add("step", "1", "optimizer step", f.row.step);
  f.add("rank", "1", "rank", f.row.rank);
  f.add("start_ns", "ns", "start", f.row.start_ns);
  f.add("duration_ns", "ns", "duration", f.row.duration_ns);
  f.add("loss", "1", "mean loss of a token over all ranks", f.row.loss);
  f.add("grad_norm", "1", "global norm of the gradient", f.row.grad_norm);
  f.add("tokens", "1", "tokens of this rank", f.row.tokens);
  return f;
}

Fields<MemoryRow> memory_fields(bool with_workspace) {
  Fields<MemoryRow> f;
  f.add("rank", "1", "rank", f.row.rank);
  f.add("step", "1", "optimizer step", f.row.step);
  f.add("time_ns", "ns", "moment of the step's peak", f.row.time_ns);
  for (std::size_t i = 0; i < memory_class_count; ++i) {
    if (i == static_cast<std::size_t>(plan::MemoryClass::workspace) && !with_workspace) continue;
    const auto name = names_of<plan::MemoryClass>()[i];
    f.add(fmt::format("{}_bytes", name), "byte", fmt::format("live bytes of the arena: {}", name), f.row.bytes[i]);
  }
  f.add("arena_touched_bytes", "byte", "pages of the arena written so far", f.row.arena_touched_bytes);
  f.add("rss_bytes", "byte", "resident memory of the process", f.row.rss_bytes);
  return f;
}

Fields<RankInfo> rank_fields() {
  Fields<RankInfo> f;
  f.add_text("host", "1", "host name", 64, f.row.host);
  f.add("node", "1", "number of the node", f.row.node);
  f.add("local_rank", "1", "position on the node", f.row.local_rank);
  return f;
}

Fields<CollectiveRow> collective_fields() {
  Fields<CollectiveRow> f;
  f.add("kind", "1", "collective", f.row.kind);
  f.add("count", "1", "calls of one rank in one step", f.row.total.count);
  f.add("payload_bytes", "byte", "size of the whole buffers", f.row.total.payload_bytes);
  f.add("received_bytes", "byte", "received from other ranks", f.row.total.received_bytes);
  return f;
}

}  // namespace foreshard::trace
