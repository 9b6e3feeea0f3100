#include "trace/reader.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "trace/event_tables.hpp"
#include "trace/format.hpp"
#include "trace/hdf5.hpp"
#include "trace/plan_tables.hpp"
#include "trace/summary_tables.hpp"

namespace foreshard::trace {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw InputError(ExitCode::bad_input, fmt::format("{}: {}", path, why));
}

/// Opens an HDF5 file, telling apart what can be wrong with it.
hdf5::Handle open(const std::string& path) {
  if (const std::string why = why_no_file(path); !why.empty()) refuse(path, why + ": check the name");
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  if (H5Fis_hdf5(path.c_str()) <= 0)
    refuse(path,
           "not an HDF5 file, or cut within its first bytes: expected a trace written by foreshard-train or "
           "foreshard-plan");
  try {
    return hdf5::open_file(path);
  } catch (const LibraryError& error) {
    refuse(path,
           fmt::format("truncated or damaged ({}): copy it again, or read the .part file of the run", error.what()));
  }
}

void expect_format(hid_t file, const std::string& path) {
  if (!hdf5::has_attribute(file, "format") || hdf5::read_text_attribute(file, "format") != format_name)
    refuse(path, fmt::format("an HDF5 file, but not a trace: its attribute `format` is not \"{}\"", format_name));
  const std::string version = hdf5::read_text_attribute(file, "format_version");
  int major = 0;
  std::from_chars(version.data(), version.data() + version.size(), major);
  if (major > format_major)
    refuse(path, fmt::format("format version {}, this program reads up to {}.x: use a newer Foreshard", version,
                             format_major));
}

RunInfo read_run(hid_t file) {
  RunInfo run;
  run.kind = hdf5::read_text_attribute(file, "kind") == text_of(Kind::predicted) ? Kind::predicted : Kind::measured;
  run.run_id = hdf5::read_text_attribute(file, "run_id");
  run.world_size = static_cast<int>(hdf5::read_integer_attribute(file, "world_size"));
  run.command_line = hdf5::read_text_attribute(file, "command_line");
  run.config_json = hdf5::read_text_attribute(file, "config");
  run.time_origin_unix_ns = hdf5::read_integer_attribute(file, "time_origin_unix_ns");
  run.clock = hdf5::read_text_attribute(file, "clock");
  run.clock_error_ns = hdf5::read_integer_attribute(file, "clock_error_ns");
  return run;
}

void expect(bool condition, const char* what) {
  if (!condition) throw LibraryError(what);
}

void expect_ranges(const Trace& trace) {
  expect(trace.run.world_size >= 1, "world_size is less than 1");
  for (const EventRow& row : trace.rows) {
    expect(row.event.op < trace.plan.ops.size(), "an event's op is not in the plan");
    expect(row.rank < static_cast<std::uint64_t>(trace.run.world_size), "an event's rank is beyond the world");
  }
}

/// Events by rank, as the index says where they lie.
std::vector<std::vector<Event>> by_rank(const Trace& trace) {
  std::vector<std::vector<Event>> events;
  for (const Batch& batch : trace.batches) {
    expect(batch.first_row <= trace.rows.size() && batch.row_count <= trace.rows.size() - batch.first_row,
           "/batches leads beyond /events");
    expect(batch.rank < static_cast<std::uint64_t>(trace.run.world_size), "a batch's rank is beyond the world");
    if (events.size() <= batch.rank) events.resize(batch.rank + 1);
    for (std::uint64_t row = batch.first_row; row < batch.first_row + batch.row_count; ++row)
      events[batch.rank].push_back(trace.rows[row].event);
  }
  return events;
}

void load(hid_t file, Trace& trace) {
  trace.run = read_run(file);
  trace.format_version = hdf5::read_text_attribute(file, "format_version");
  trace.software_version = hdf5::read_text_attribute(file, "softwareVersion");
  trace.date = hdf5::read_text_attribute(file, "date");
  trace.plan_hash = hdf5::read_text_attribute(file, "plan_hash");
  trace.complete = hdf5::has_attribute(file, closed_attribute);
  trace.plan = read_plan(file);
  trace.ranks = read_table<RankInfo>(file, "ranks", rank_fields());
  trace.rows = read_table<EventRow>(file, "events", event_fields());
  trace.batches = read_table<Batch>(file, "batches", batch_fields());
  trace.steps = read_table<StepRow>(file, "steps", step_fields());
  trace.memory = read_table<MemoryRow>(file, "memory", memory_fields(hdf5::has(file, "memory/workspace_bytes")));
  trace.summary = read_summary(file);
  expect_ranges(trace);
  trace.events = by_rank(trace);
}

void expect_sound(hid_t file, const std::string& path) {
  if (hdf5::read_integer_attribute(file, flushing_attribute) != 0)
    refuse(path, "its writer was stopped while it changed the file: read the other of the run's two parts");
}

Trace read_file(const std::string& path) {
  Trace trace;
  trace.path = path;
  const hdf5::Handle file = open(path);
  try {
    expect_format(file.id(), path);
    expect_sound(file.id(), path);
    load(file.id(), trace);
  } catch (const LibraryError& error) {
    refuse(path, fmt::format("damaged or incomplete: {}", error.what()));
  }
  return trace;
}

std::optional<Trace> read_if_sound(const std::string& path) {
  try {
    return read_file(path);
  } catch (const InputError&) {
    return {};
  }
}

}  // namespace

Trace read(const std::string& path) {
  const std::string other = other_part(path);
  std::optional<Trace> second = other.empty() ? std::nullopt : read_if_sound(other);
  if (!second) return read_file(path);
  std::optional<Trace> first = read_if_sound(path);
  const bool second_has_more = !first || std::pair(second->rows.size(), second->steps.size()) >
                                             std::pair(first->rows.size(), first->steps.size());
  return std::move(second_has_more ? *second : *first);
}

}  // namespace foreshard::trace
