#include "sim/validation/validate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "sim/validation/predict_run.hpp"
#include "sim/validation/published_run.hpp"

namespace foreshard::sim::validation {
namespace {

/// What one row came to: a pair of numbers, or why there is none.
struct Outcome {
  Pair pair;
  std::string skipped;
};

std::string skip_of(const InputError& error) {
  const std::string message = error.what();
  return message.substr(0, message.find('\n'));
}

Outcome outcome_of(const PublishedRow& row, const closed_form::Profile& profile) {
  const auto read = interpret(row);
  if (const auto* skip = std::get_if<Skip>(&read)) return {.skipped = skip->reason};
  const auto& run = std::get<PublishedRun>(read);
  try {
    const auto measured = measured_tokens_per_s(row, run, peak_tflops(run, profile));
    if (!measured) return {.skipped = "no throughput printed"};
    return {.pair = {.source = row.source, .predicted = predicted_tokens_per_s(run, profile), .measured = *measured}};
  } catch (const InputError& error) {
    return {.skipped = skip_of(error)};
  }
}

nlohmann::json to_json(const Errors& errors) {
  return {{"rows_used", errors.rows},
          {"throughput_mape_pct", errors.mape_pct},
          {"throughput_bias_pct", errors.bias_pct},
          {"throughput_p90_pct", errors.p90_pct}};
}

std::string line(const std::string& name, const Errors& e) {
  return fmt::format("{:<58.58} {:>5} {:>8.1f} {:>8.1f} {:>8.1f}\n", name, e.rows, e.mape_pct, e.bias_pct, e.p90_pct);
}

}  // namespace

void validate(CsvTable& table, const closed_form::Profile& profile, Validation& into) {
  const std::vector<PublishedRow> rows = published_rows(table);
  for (const char* column : {"predicted_tokens_per_s_per_gpu", "error_pct", "skipped"})
    table.header.emplace_back(column);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Outcome outcome = outcome_of(rows[i], profile);
    const bool used = outcome.skipped.empty();
    table.rows[i].push_back(used ? fmt::format("{:.2f}", outcome.pair.predicted) : "");
    table.rows[i].push_back(used ? fmt::format("{:.2f}", 100 * outcome.pair.error()) : "");
    table.rows[i].push_back(outcome.skipped);
    outcome.pair.row = into.rows++;
    if (used)
      into.throughput.push_back(std::move(outcome.pair));
    else
      ++into.skipped[outcome.skipped];
  }
}

nlohmann::json to_json(const Validation& validation) {
  nlohmann::json json = to_json(errors_of(validation.throughput));
  json["rows"] = validation.rows;
  json["rows_skipped"] = validation.skipped;
  for (const auto& [source, errors] : errors_by_source(validation.throughput))
    json["per_source"][source] = to_json(errors);
  return json;
}

std::string to_text(const Validation& validation) {
  std::string text =
      fmt::format("{:<58} {:>5} {:>8} {:>8} {:>8}\n", "throughput, % of measured", "rows", "MAPE", "bias", "p90");
  for (const auto& [source, errors] : errors_by_source(validation.throughput)) text += line(source, errors);
  text += line("all", errors_of(validation.throughput));
  text += "\nfurthest off (rows are counted over all files)\n";
  for (const Pair& pair : worst(validation.throughput, 8))
    text += fmt::format("  row {:<5} {:<40.40} predicted {:>9.1f} measured {:>9.1f} {:>+7.1f} %\n", pair.row + 1,
                        pair.source, pair.predicted, pair.measured, 100 * pair.error());
  text += "\nnot used\n";
  for (const auto& [reason, rows] : validation.skipped) text += fmt::format("  {:>5}  {}\n", rows, reason);
  return text;
}

}  // namespace foreshard::sim::validation
