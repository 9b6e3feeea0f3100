#pragma once
#include "sim/runtimes/torch_step.hpp"
#include "sim/validation/csv_table.hpp"
#include "sim/validation/score.hpp"

namespace foreshard::sim::validation {

/// True of tables of live tensor bytes, as tests/golden/make_fsdp_memory.py makes them: with columns `runtime` and
/// `peak_bytes`.
bool is_live_memory(const CsvTable& table);

/// The run that a row describes, as the script ran it: on the CPU's dispatcher, with fake tensors unless its column
/// `real` says True. Columns of settings that the first tables had not may be left out. Throws InputError(bad_input)
/// that names the file, the row and what is not known.
torch::TorchRun live_memory_run(const CsvTable& table, std::size_t row);
/// The step that it measured, from 1 on.
int live_memory_step(const CsvTable& table, std::size_t row);

/// What a table of live bytes came to: peaks, and rows in which the phase of the peak or the bytes after the step are
/// not the same.
struct LiveMemory {
  std::vector<Pair> peaks;
  std::size_t other_phases = 0, other_after_step = 0;
};

/// Predicts every row of `table`, and appends to each the columns `predicted_peak_bytes`, `predicted_peak_in` and
/// `predicted_after_step_bytes`. Throws InputError(bad_input) that names the file, the row and what is not known.
void validate_live_memory(CsvTable& table, LiveMemory& into);

}  // namespace foreshard::sim::validation
