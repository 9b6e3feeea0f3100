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

// Read as fast as 65,536 rows and 2 % larger (measured on 1e6 events), but a flush, which recompresses the last chunk,
// costs a quarter.
constexpr hsize_t event_chunk_rows = 16384;
constexpr hsize_t small_chunk_rows = 1024;

void expect_absent(const std::string& path) {
  if (std::filesystem::exists(path))
    throw InputError(ExitCode::usage,
                     fmt::format("the trace {} exists and is not overwritten: give another name, remove it, or use "
                                 "--force where the command has it",
                                 path));
}

/// A device, pipe or folder would be replaced by a file of that name.
void expect_no_other(const std::string& path) {
  if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path))
    throw InputError(ExitCode::usage,
                     fmt::format("the trace {} cannot be written: there is something of that name that "
                                 "is not a file; give another name",
                                 path));
}

void expect_folder(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder))
    throw InputError(ExitCode::usage, fmt::format("the trace {} cannot be written: there is no folder {}; make it, or "
                                                  "give another name",
                                                  path, folder.string()));
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

/// One of the two files that are written in turns: complete but for the time of its own `flush`.
class Half {
 public:
  Half(std::string path, const RunInfo& run, const plan::Plan& plan, std::span<const RankInfo> ranks)
      : path_(std::move(path)), file_(hdf5::create_file(path_)) {
    write_run(file_.id(), run, plan);
    hdf5::write_attribute(file_.id(), flushing_attribute, std::int64_t{0});
    write_plan(file_.id(), plan);
    write_table<RankInfo>(file_.id(), "ranks", rank_fields(), ranks);
    events_.emplace(file_.id(), "events", event_fields(), event_chunk_rows);
    batches_.emplace(file_.id(), "batches", batch_fields(), small_chunk_rows);
    steps_.emplace(file_.id(), "steps", step_fields(), small_chunk_rows);
    memory_.emplace(file_.id(), "memory", memory_fields(), small_chunk_rows);
    to_disk();
  }

  void append(std::uint32_t rank, std::span<const EventRow> events) {
    batches_->append({rank, events_->rows(), events.size()});
    for (const EventRow& event : events) events_->append(event);
  }
  void append(const StepRow& step) { steps_->append(step); }
  void append(const MemoryRow& memory) { memory_->append(memory); }

  /// HDF5 writes in an order of its own, so the mark must be on the disk before and after everything else.
  void flush() {
    mark(1);
    events_->flush();
    batches_->flush();
    steps_->flush();
    memory_->flush();
    to_disk();
    mark(0);
  }

  void close(const Summary& summary, std::span<const StepRow> steps) {
    flush();
    mark(1);
    write_summary(file_.id(), summary, steps);
    hdf5::write_attribute(file_.id(), closed_attribute, std::int64_t{1});
    to_disk();
    mark(0);
    events_.reset();
    batches_.reset();
    steps_.reset();
    memory_.reset();
    file_.close(path_);
  }

 private:
  void mark(std::int64_t flushing) {
    hdf5::rewrite_attribute(file_.id(), flushing_attribute, flushing);
    to_disk();
  }
  void to_disk() { hdf5::checked(H5Fflush(file_.id(), H5F_SCOPE_LOCAL), "H5Fflush", path_); }

  std::string path_;
  hdf5::Handle file_;
  std::optional<Table<EventRow>> events_;
  std::optional<Table<Batch>> batches_;
  std::optional<Table<StepRow>> steps_;
  std::optional<Table<MemoryRow>> memory_;
};

}  // namespace

class Writer::File {
 public:
  File(std::string path, const RunInfo& run, const plan::Plan& plan, std::span<const RankInfo> ranks, bool force)
      : path_(std::move(path)), world_size_(run.world_size) {
    expect_folder(path_);
    for (const std::string& file : {path_, first_part(path_), second_part(path_)}) {
      expect_no_other(file);
      if (!force) expect_absent(file);
    }
    for (const plan::Op& op : plan.ops) facts_.push_back(facts_of(op));
    halves_.push_back(std::make_unique<Half>(first_part(path_), run, plan, ranks));
    halves_.push_back(std::make_unique<Half>(second_part(path_), run, plan, ranks));
  }

  void append(std::uint32_t rank, std::span<const Event> events) {
    FORESHARD_EXPECT(rank < static_cast<std::uint32_t>(world_size_), fmt::format("rank {} of {}", rank, world_size_));
    if (events.empty()) return;
    std::vector<EventRow> rows;
    for (const Event& event : events) rows.push_back(row_of(rank, event));
    for (auto& half : halves_) half->append(rank, rows);
  }
  void append(const StepRow& step) {
    steps_.push_back(step);
    for (auto& half : halves_) half->append(step);
  }
  void append(const MemoryRow& memory) {
    for (auto& half : halves_) half->append(memory);
  }
  void set_summary(const Summary& summary) { summary_ = summary; }

  void flush() {
    halves_[next_]->flush();
    next_ = 1 - next_;
  }

  void close() {
    halves_[0]->close(summary_, steps_);
    halves_.pop_back();
    std::filesystem::rename(first_part(path_), path_);
    std::filesystem::remove(second_part(path_));
  }

 private:
  EventRow row_of(std::uint32_t rank, const Event& event) const {
    FORESHARD_EXPECT(event.op < facts_.size(), fmt::format("op {} of a plan of {} ops", event.op, facts_.size()));
    EventRow row = facts_[event.op];
    row.rank = rank;
    row.event = event;
    return row;
  }

  std::string path_;
  int world_size_;
  std::vector<EventRow> facts_;  ///< by op
  std::vector<std::unique_ptr<Half>> halves_;
  std::size_t next_ = 0;  ///< the half to flush
  std::vector<StepRow> steps_;
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
