#pragma once
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "trace/reader.hpp"

namespace foreshard::trace {

/// Ranks from `first` to `last`, both included.
struct RankRange {
  std::uint32_t first = 0, last = 0;
};

/// Which part of a trace is exported.
struct Selection {
  std::int32_t first_step = std::numeric_limits<std::int32_t>::min(),
               last_step = std::numeric_limits<std::int32_t>::max();
  std::vector<RankRange> ranks;  ///< none given: all

  bool has_step(std::int32_t step) const { return step >= first_step && step <= last_step; }
  bool has_rank(std::uint32_t rank) const;
};

/// "3", "3:7" (both ends included), ":7", "3:". Throws InputError (usage) for anything else.
void select_steps(Selection& selection, const std::string& text);
/// "0", "0,3", "0:3" (both ends included), or a list of these. Throws InputError (usage) for anything else.
void select_ranks(Selection& selection, const std::string& text);

/// Writes Chrome trace JSON in Kineto's shape, which ui.perfetto.dev, chrome://tracing and HTA open.
/// Source: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event Format).
/// A process per rank; in it a thread per lane, a thread of steps (ProfilerStep#N) and counters of live bytes by class.
/// Collectives are called `nccl:<kind> <unit>`, whoever carried them out: HTA takes only names that begin so for
/// communication. Times are microseconds after the first event or step selected, `baseTimeNanoseconds`. Slices of one
/// thread never overlap. Throws InputError if the selection is empty or `path` exists, unless `force`; LibraryError if
/// it cannot be written.
void export_perfetto(const Trace& trace, const Selection& selection, const std::string& path, bool force);

/// Writes comma-separated tables with a header line: the events alone if `path` ends in .csv, else into the folder
/// `path` events.csv, steps.csv, memory.csv and ops.csv. Throws as export_perfetto.
void export_csv(const Trace& trace, const Selection& selection, const std::string& path, bool force);

}  // namespace foreshard::trace
