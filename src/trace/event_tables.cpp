#include "trace/event_tables.hpp"

#include <fmt/format.h>

namespace foreshard::trace {

Fields<EventRow> event_fields() {
  Fields<EventRow> f;
  const auto add = [&f](const char* name, const char* units, const char* long_name, auto access) {
    f.push_back(field<EventRow>({name, units, long_name}, access));
  };
  add(
      "rank", "1", "rank that ran the op", [](auto& r) -> auto& { return r.rank; });
  add(
      "lane", "1", "lane it ran on", [](auto& r) -> auto& { return r.lane; });
  add(
      "kind", "1", "what was computed or moved", [](auto& r) -> auto& { return r.kind; });
  add(
      "op", "1", "row of /plan/ops", [](auto& r) -> auto& { return r.event.op; });
  add(
      "unit", "1", "unit served, -1 = none", [](auto& r) -> auto& { return r.unit; });
  add(
      "step", "1", "optimizer step", [](auto& r) -> auto& { return r.event.step; });
  add(
      "micro_batch", "1", "micro-batch of the step", [](auto& r) -> auto& { return r.event.micro_batch; });
  add(
      "start_ns", "ns", "start", [](auto& r) -> auto& { return r.event.start_ns; });
  add(
      "duration_ns", "ns", "duration", [](auto& r) -> auto& { return r.event.duration_ns; });
  add(
      "received_bytes", "byte", "received from other ranks", [](auto& r) -> auto& { return r.event.received_bytes; });
  add(
      "bytes", "byte", "memory read and written", [](auto& r) -> auto& { return r.bytes; });
  add(
      "flops", "1", "floating-point operations", [](auto& r) -> auto& { return r.flops; });
  return f;
}

Fields<Batch> batch_fields() {
  Fields<Batch> f;
  f.push_back(field<Batch>(
      {"rank", "1", "rank of all rows of the batch"}, [](auto& r) -> auto& { return r.rank; }));
  f.push_back(field<Batch>(
      {"first_row", "1", "row of /events"}, [](auto& r) -> auto& { return r.first_row; }));
  f.push_back(field<Batch>(
      {"row_count", "1", "rows"}, [](auto& r) -> auto& { return r.row_count; }));
  return f;
}

Fields<StepRow> step_fields() {
  Fields<StepRow> f;
  const auto add = [&f](const char* name, const char* units, const char* long_name, auto access) {
    f.push_back(field<StepRow>({name, units, long_name}, access));
  };
  add(
      "step", "1", "optimizer step", [](auto& r) -> auto& { return r.step; });
  add(
      "rank", "1", "rank", [](auto& r) -> auto& { return r.rank; });
  add(
      "start_ns", "ns", "start", [](auto& r) -> auto& { return r.start_ns; });
  add(
      "duration_ns", "ns", "duration", [](auto& r) -> auto& { return r.duration_ns; });
  add(
      "loss", "1", "mean loss of a token over all ranks", [](auto& r) -> auto& { return r.loss; });
  add(
      "grad_norm", "1", "global norm of the gradient", [](auto& r) -> auto& { return r.grad_norm; });
  add(
      "tokens", "1", "tokens of this rank", [](auto& r) -> auto& { return r.tokens; });
  return f;
}

Fields<MemoryRow> memory_fields() {
  Fields<MemoryRow> f;
  const auto add = [&f](const std::string& name, const char* units, const std::string& long_name, auto access) {
    f.push_back(field<MemoryRow>({name, units, long_name}, access));
  };
  add(
      "rank", "1", "rank", [](auto& r) -> auto& { return r.rank; });
  add(
      "step", "1", "optimizer step", [](auto& r) -> auto& { return r.step; });
  add(
      "time_ns", "ns", "moment of the step's peak", [](auto& r) -> auto& { return r.time_ns; });
  for (std::size_t i = 0; i < memory_class_count; ++i) {
    const auto name = names_of<plan::MemoryClass>()[i];
    add(
        fmt::format("{}_bytes", name), "byte",
        fmt::format("live bytes of the arena: {}", name), [i](auto& r) -> auto& { return r.bytes[i]; });
  }
  add(
      "arena_touched_bytes", "byte", "pages of the arena written so far",
      [](auto& r) -> auto& { return r.arena_touched_bytes; });
  add(
      "rss_bytes", "byte", "resident memory of the process", [](auto& r) -> auto& { return r.rss_bytes; });
  return f;
}

Fields<RankInfo> rank_fields() {
  Fields<RankInfo> f;
  f.push_back(text_field<RankInfo>(
      {"host", "1", "host name"}, 64, [](auto& r) -> auto& { return r.host; }));
  f.push_back(field<RankInfo>(
      {"node", "1", "number of the node"}, [](auto& r) -> auto& { return r.node; }));
  f.push_back(field<RankInfo>(
      {"local_rank", "1", "position on the node"}, [](auto& r) -> auto& { return r.local_rank; }));
  return f;
}

Fields<CollectiveRow> collective_fields() {
  Fields<CollectiveRow> f;
  const auto add = [&f](const char* name, const char* units, const char* long_name, auto access) {
    f.push_back(field<CollectiveRow>({name, units, long_name}, access));
  };
  add(
      "kind", "1", "collective", [](auto& r) -> auto& { return r.kind; });
  add(
      "count", "1", "calls of one rank in one step", [](auto& r) -> auto& { return r.total.count; });
  add(
      "payload_bytes", "byte", "size of the whole buffers", [](auto& r) -> auto& { return r.total.payload_bytes; });
  add(
      "received_bytes", "byte", "received from other ranks", [](auto& r) -> auto& { return r.total.received_bytes; });
  return f;
}

}  // namespace foreshard::trace
