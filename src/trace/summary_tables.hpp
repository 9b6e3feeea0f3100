#pragma once
#include <optional>
#include <span>

#include "trace/hdf5.hpp"
#include "trace/tables.hpp"

namespace foreshard::trace {

/// Writes the group /summary: single numbers, /summary/collectives, and the default plot /summary/step_time
/// (NeXus NXdata: https://manual.nexusformat.org/datarules.html), the mean over ranks of each step's time.
void write_summary(hid_t file, const Summary& summary, std::span<const StepRow> steps);

/// Reads it; none where there is no /summary.
std::optional<Summary> read_summary(hid_t file);

}  // namespace foreshard::trace
