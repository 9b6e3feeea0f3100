#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "trace/tables.hpp"

namespace foreshard::trace {

/// A trace in memory.
struct Trace {
  std::string path;  ///< that was read
  RunInfo run;
  std::string format_version, software_version, date;
  std::string plan_hash;  ///< 16 hexadecimal digits, as written by the run
  bool complete = true;   ///< false for one whose writer did not close it
  plan::Plan plan;
  std::vector<RankInfo> ranks;
  std::vector<EventRow> rows;  ///< /events as stored
  std::vector<Batch> batches;
  std::vector<std::vector<Event>> events;  ///< by rank; within a rank in order of appending
  std::vector<StepRow> steps;
  std::vector<MemoryRow> memory;
  std::optional<Summary> summary;  ///< none if the writer did not close it
};

/// Loads a trace. Of a run that still goes on or was killed, give either of its two parts: the sound one that has more
/// is read. Datasets and attributes that it does not know are ignored. Throws InputError (bad_input) with the path and
/// a remedy for a file that is missing, not HDF5, not a trace, truncated, damaged, inconsistent in itself, or of a
/// newer major version.
Trace read(const std::string& path);

}  // namespace foreshard::trace
