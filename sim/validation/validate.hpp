#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/closed_form/profile.hpp"
#include "sim/validation/csv_table.hpp"
#include "sim/validation/score.hpp"

namespace foreshard::sim::validation {

/// Predictions beside published rows.
struct Validation {
  std::vector<Pair> throughput;                ///< tokens per second and GPU
  std::map<std::string, std::size_t> skipped;  ///< rows by reason
  std::size_t rows = 0;                        ///< read
};

/// Predicts every row of `table` that can be used, and appends to each row the columns
/// `predicted_tokens_per_s_per_gpu`, `error_pct` and `skipped`.
void validate(CsvTable& table, const closed_form::Profile& profile, Validation& into);

/// One object: throughput_mape_pct, throughput_bias_pct, throughput_p90_pct, rows_used, rows_skipped (by reason),
/// per_source.
nlohmann::json to_json(const Validation& validation);

/// The same as a table to read, with the rows that are furthest off.
std::string to_text(const Validation& validation);

}  // namespace foreshard::sim::validation
