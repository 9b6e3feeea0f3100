#include "train/trace_sink.hpp"

#include <cstring>
#include <span>

#include "base/process_memory.hpp"
#include "trace/memory.hpp"

namespace foreshard::train {
namespace {

/// On rank 0 the rows of every rank, by rank; elsewhere nothing.
template <class Row>
std::vector<std::vector<Row>> gather_rows(comm::Communicator& communicator, std::span<const Row> rows) {
  static_assert(std::is_trivially_copyable_v<Row>);
  std::vector<std::vector<Row>> all;
  for (const auto& bytes : communicator.gather(std::as_bytes(rows))) {
    all.emplace_back(bytes.size() / sizeof(Row));
    if (!bytes.empty()) std::memcpy(all.back().data(), bytes.data(), bytes.size());
  }
  return all;
}

trace::MemoryRow memory_of(const plan::Plan& plan, std::span<const trace::Event> step, std::uint32_t rank,
                           const engine::Engine& engine) {
  const auto timeline = trace::memory_timeline(plan, step);
  const trace::MemoryPoint& peak = trace::peak_of(timeline);
  return {.rank = rank,
          .step = step.front().step,
          .time_ns = peak.time_ns,
          .bytes = peak.bytes,
          .arena_touched_bytes = engine.touched_bytes(),
          .rss_bytes = resident_bytes()};
}

}  // namespace

TraceSink::TraceSink(comm::Communicator& communicator, const std::string& path, const trace::RunInfo& run,
                     const plan::Plan& plan, std::vector<trace::RankInfo> ranks)
    : communicator_(communicator), plan_(plan) {
  if (communicator.rank() == 0) writer_ = std::make_unique<trace::Writer>(path, run, plan, ranks);
}

TraceSink::~TraceSink() = default;

void TraceSink::add(std::int64_t step, const StepResult& result, std::int64_t tokens, std::vector<trace::Event> events,
                    const engine::Engine& engine) {
  steps_.push_back({.step = static_cast<std::int32_t>(step),
                    .rank = static_cast<std::uint32_t>(communicator_.rank()),
                    .start_ns = result.start_ns,
                    .duration_ns = result.duration_ns,
                    .loss = result.loss,
                    .grad_norm = result.grad_norm,
                    .tokens = tokens});
  events_.insert(events_.end(), events.begin(), events.end());
  last_step_ = std::move(events);
  engine_ = &engine;
}

void TraceSink::flush() {
  std::vector<trace::MemoryRow> memory;
  if (!last_step_.empty())
    memory.push_back(memory_of(plan_, last_step_, static_cast<std::uint32_t>(communicator_.rank()), *engine_));
  const auto events = gather_rows<trace::Event>(communicator_, events_);
  const auto steps = gather_rows<trace::StepRow>(communicator_, steps_);
  const auto memories = gather_rows<trace::MemoryRow>(communicator_, memory);
  events_.clear();
  steps_.clear();
  last_step_.clear();
  if (!writer_) return;
  for (std::size_t rank = 0; rank < events.size(); ++rank)
    writer_->append(static_cast<std::uint32_t>(rank), events[rank]);
  for (const auto& rows : steps)
    for (const trace::StepRow& row : rows) writer_->append(row);
  for (const auto& rows : memories)
    for (const trace::MemoryRow& row : rows) writer_->append(row);
  writer_->flush();
}

void TraceSink::close(const trace::Summary& summary) {
  flush();
  if (!writer_) return;
  writer_->set_summary(summary);
  writer_->close();
}

}  // namespace foreshard::train
