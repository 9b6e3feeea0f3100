#include "trace/writer.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <optional>

#include "base/error.hpp"
#include "base/version.hpp"
#include "trace/event_tables.hpp"
#include "trace/format.hpp"
#include "trace/hdf5.hpp"
#include "trace/plan_tables.hpp"
#include "trace/summary_tables.hpp"

namespace foreshard::trace {
namespace {

constexpr hsize_t event_chunk_rows = 65536;
constexpr hsize_t small_chunk_rows = 1024;

/// Creates `part`, having made sure that nothing is overwritten unasked.
hdf5::Handle create(const std::string& path, const std::string& part, bool force) {
  for (const std::string& file : {path, part})
    if (!force && std::filesystem::exists(file))
      throw InputError(ExitCode::usage, fmt::format("the trace {} exists and is not overwritten: give another name, "
                                                    "remove it, or allow overwriting it",
                                                    file));
  return hdf5::create_file(part);
}

std::string now_text() { return fmt::format("{:%Y-%m-%d %H:%M:%S} +0000", fmt::gmtime(std::time(nullptr))); }

void write_run(hid_t file, const RunInfo& run, const plan::Plan& plan) {
  hdf5::write_attribute(file, "format", format_name);
  hdf5::write_attribute(file, "format_version", format_version);
  hdf5::write_attribute(file, "software", "foreshard");
  hdf5::write_attribute(file, "softwareVersion", version());
  hdf5::write_attribute(file, "date", now_text());
  hdf5::write_attribute(file, "kind", text_of(run.kind));
  hdf5::write_attribute(file, "run_id", run.run_id);
  hdf5::write_attribute(file, "world_size", std::int64_t{run.world_size});
  hdf5::write_attribute(file, "command_line", run.command_line);
  hdf5::write_attribute(file, "config", run.config_json);
  hdf5::write_attribute(file, "time_origin_unix_ns", run.time_origin_unix_ns);
  hdf5::write_attribute(file, "clock", run.clock);
  hdf5::write_attribute(file, "clock_error_ns", run.clock_error_ns);
  hdf5::write_attribute(file, "plan_hash", hash_text(plan::hash_of(plan)));
  hdf5::write_attribute(file, "NX_class", "NXroot");
  hdf5::write_attribute(file, "default", "summary");
}

/// What every event of an op says besides its times.
EventRow facts_of(const plan::Op& op) {
  EventRow row;
  row.lane = op.lane;
  row.kind = op.kind;
  row.unit = op.unit;
  row.bytes = static_cast<std::uint64_t>(op.cost.read_bytes + op.cost.written_bytes);
  row.flops = op.cost.flops;
  return row;
}

}  // namespace

class Writer::File {
 public:
  File(std::string path, const RunInfo& run, const plan::Plan& plan, std::span<const RankInfo> ranks, bool force)
      : path_(std::move(path)), file_(create(path_, part(), force)), world_size_(run.world_size) {
    for (const plan::Op& op : plan.ops) facts_.push_back(facts_of(op));
    write_run(file_.id(), run, plan);
    write_plan(file_.id(), plan);
    write_table<RankInfo>(file_.id(), "ranks", rank_fields(), ranks);
    events_.emplace(file_.id(), "events", event_fields(), event_chunk_rows);
    batches_.emplace(file_.id(), "batches", batch_fields(), small_chunk_rows);
    steps_.emplace(file_.id(), "steps", step_fields(), small_chunk_rows);
    memory_.emplace(file_.id(), "memory", memory_fields(), small_chunk_rows);
    flush();
  }

  void append(std::uint32_t rank, std::span<const Event> events) {
    FORESHARD_EXPECT(rank < static_cast<std::uint32_t>(world_size_), fmt::format("rank {} of {}", rank, world_size_));
    if (events.empty()) return;
    batches_->append({rank, events_->rows(), events.size()});
    for (const Event& event : events) {
      FORESHARD_EXPECT(event.op < facts_.size(), fmt::format("op {} of a plan of {} ops", event.op, facts_.size()));
      EventRow row = facts_[event.op];
      row.rank = rank;
      row.event = event;
      events_->append(row);
    }
  }
  void append(const StepRow& step) {
    steps_->append(step);
    curve_.push_back(step);
  }
  void append(const MemoryRow& memory) { memory_->append(memory); }
  void set_summary(const Summary& summary) { summary_ = summary; }

  void flush() {
    events_->flush();
    batches_->flush();
    steps_->flush();
    memory_->flush();
    hdf5::checked(H5Fflush(file_.id(), H5F_SCOPE_LOCAL), "H5Fflush", part());
  }

  void close() {
    flush();
    write_summary(file_.id(), summary_, curve_);
    hdf5::write_attribute(file_.id(), closed_attribute, std::int64_t{1});
    events_.reset();
    batches_.reset();
    steps_.reset();
    memory_.reset();
    file_.close(part());
    std::filesystem::rename(part(), path_);
  }

 private:
  std::string part() const { return path_ + ".part"; }

  std::string path_;
  hdf5::Handle file_;
  int world_size_;
  std::vector<EventRow> facts_;  ///< by op
  std::optional<Table<EventRow>> events_;
  std::optional<Table<Batch>> batches_;
  std::optional<Table<StepRow>> steps_;
  std::optional<Table<MemoryRow>> memory_;
  std::vector<StepRow> curve_;
  Summary summary_;
};

Writer::Writer(std::string path, const RunInfo& run, const plan::Plan& plan, std::span<const RankInfo> ranks,
               bool force)
    : file_(std::make_unique<File>(std::move(path), run, plan, ranks, force)) {}
Writer::~Writer() = default;

void Writer::append(std::uint32_t rank, std::span<const Event> events) { open().append(rank, events); }
void Writer::append(const StepRow& step) { open().append(step); }
void Writer::append(const MemoryRow& memory) { open().append(memory); }
void Writer::set_summary(const Summary& summary) { open().set_summary(summary); }
void Writer::flush() { open().flush(); }

void Writer::close() {
  open().close();
  file_.reset();
}

Writer::File& Writer::open() {
  FORESHARD_EXPECT(file_ != nullptr, "the trace is closed");
  return *file_;
}

}  // namespace foreshard::trace
