#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/closed_form/profile.hpp"
#include "sim/validation/csv_table.hpp"
#include "sim/validation/live_memory.hpp"
#include "sim/validation/score.hpp"

namespace foreshard::sim::validation {

/// Predictions beside published rows.
struct Validation {
  std::vector<Pair> throughput;                      ///< tokens per second and GPU
  std::vector<Pair> memory;                          ///< peak bytes, of the row's kind
  std::vector<Pair> event_throughput, event_memory;  ///< the same by simulated steps, of rows that can be
  std::map<std::string, std::size_t> not_simulated;  ///< rows by reason
  LiveMemory live;                                   ///< of tables of live tensor bytes
  FitVerdicts verdicts;                              ///< of runs that are known to have fitted or not
  std::map<std::string, std::size_t> skipped;        ///< rows without throughput by reason
  std::size_t rows = 0;                              ///< read
  std::size_t fitted_constants = 0;                  ///< of the profile

  /// One more row, with what there is of it; `fits` is {predicted, measured}.
  void add(std::optional<Pair> of_throughput, std::optional<Pair> of_memory,
           const std::optional<std::pair<bool, bool>>& fits, const std::string& why_skipped);
};

/// Closed form alone, or simulated steps of PyTorch's runtimes besides.
enum class Level : std::uint8_t { closed_form, event };

/// Of a table of published runs or of live tensor bytes: predicts every row that can be used, and appends to each row
/// the columns `predicted_tokens_per_s_per_gpu`, `error_pct` and `skipped`, with `Level::event` also those of
/// simulated steps.
void validate(CsvTable& table, const closed_form::Profile& profile, Validation& into, Level level = Level::closed_form);

/// One object: throughput_mape_pct, throughput_bias_pct, throughput_p90_pct, rows_used, the same of memory where a row
/// has it, false_fit and wasted_headroom (rates), scores ({asked, reached, rows} by name), live_mape_pct and
/// live_p90_pct of live tensor bytes where there are any, rows_skipped (by reason), per_source.
nlohmann::json to_json(const Validation& validation);

/// The same as a table to read, with the rows that are furthest off.
std::string to_text(const Validation& validation);

}  // namespace foreshard::sim::validation
