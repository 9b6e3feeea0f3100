#include "sim/validation/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "sim/validation/predict_run.hpp"
#include "sim/validation/published_run.hpp"

namespace foreshard::sim::validation {
namespace {

constexpr double gibibyte = 1073741824;

/// What one row came to: pairs of numbers, and why there is none.
struct Outcome {
  std::optional<Pair> throughput, memory;
  std::optional<std::pair<bool, bool>> fits;  ///< predicted, measured
  std::string skipped;
};

std::string first_line(const std::string& message) { return message.substr(0, message.find('\n')); }

/// Not where settings that decide memory stand in the notes alone, each row adding one to those before it.
bool can_be_scored(const PublishedRow& row) {
  return row.peak_mem_gib && row.exclude.empty() && row.notes.find("cumulative step: ") == std::string::npos;
}

Outcome predicted(const PublishedRow& row, const PublishedRun& run, const closed_form::Profile& profile) {
  Outcome outcome;
  if (const auto measured = measured_tokens_per_s(row, run, peak_tflops(run, profile)))
    outcome.throughput = {
        .source = row.source, .predicted = predicted_tokens_per_s(run, profile), .measured = *measured};
  if (can_be_scored(row) && run.peak_kind != PeakKind::unknown && !run.offloads)
    outcome.memory = {.source = row.source,
                      .predicted = predicted_peak_bytes(run, profile),
                      .measured = *row.peak_mem_gib * gibibyte};
  const bool ran = outcome.throughput || row.peak_mem_gib;
  if ((ran || row.oom == "yes") && !run.offloads) outcome.fits = {fits(run, profile), row.oom != "yes"};
  if (!outcome.throughput) outcome.skipped = "no throughput printed";
  return outcome;
}

Outcome outcome_of(const PublishedRow& row, const closed_form::Profile& profile) {
  const auto read = interpret(row);
  if (const auto* skip = std::get_if<Skip>(&read)) return {.skipped = skip->reason};
  try {
    return predicted(row, std::get<PublishedRun>(read), profile);
  } catch (const InputError& error) {
    return {.skipped = first_line(error.what())};
  }
}

std::string number(const std::optional<Pair>& pair, double unit) {
  return pair ? fmt::format("{:.2f}", pair->predicted / unit) : "";
}
std::string percent(const std::optional<Pair>& pair) { return pair ? fmt::format("{:.2f}", 100 * pair->error()) : ""; }

nlohmann::json to_json(const Errors& throughput, const Errors& memory) {
  nlohmann::json json{{"rows_used", throughput.rows},
                      {"throughput_mape_pct", throughput.mape_pct},
                      {"throughput_bias_pct", throughput.bias_pct},
                      {"throughput_p90_pct", throughput.p90_pct},
                      {"memory_rows_used", memory.rows}};
  if (memory.rows > 0)
    json.update({{"memory_mape_pct", memory.mape_pct},
                 {"memory_bias_pct", memory.bias_pct},
                 {"memory_p90_pct", memory.p90_pct}});
  return json;
}

std::string line(const std::string& name, const Errors& e) {
  return fmt::format("{:<58.58} {:>5} {:>8.1f} {:>8.1f} {:>8.1f}\n", name, e.rows, e.mape_pct, e.bias_pct, e.p90_pct);
}

}  // namespace

void validate(CsvTable& table, const closed_form::Profile& profile, Validation& into) {
  if (is_live_memory(table)) return validate_live_memory(table, into.live);
  const std::vector<PublishedRow> rows = published_rows(table);
  for (const char* column :
       {"predicted_tokens_per_s_per_gpu", "error_pct", "predicted_peak_mem_gib", "memory_error_pct", "skipped"})
    table.header.emplace_back(column);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Outcome outcome = outcome_of(rows[i], profile);
    for (std::string field : {number(outcome.throughput, 1), percent(outcome.throughput),
                              number(outcome.memory, gibibyte), percent(outcome.memory), outcome.skipped})
      table.rows[i].push_back(std::move(field));
    into.add(outcome.throughput, outcome.memory, outcome.fits, outcome.skipped);
  }
}

void Validation::add(std::optional<Pair> of_throughput, std::optional<Pair> of_memory,
                     const std::optional<std::pair<bool, bool>>& fits, const std::string& why_skipped) {
  const std::size_t row = rows++;
  for (auto& [pair, all] : {std::pair{&of_throughput, &throughput}, std::pair{&of_memory, &memory}}) {
    if (!*pair) continue;
    (*pair)->row = row;
    all->push_back(**pair);
  }
  if (fits) verdicts.add(fits->first, fits->second);
  if (!why_skipped.empty()) ++skipped[why_skipped];
}

void add_live(const LiveMemory& live, nlohmann::json& json) {
  const Errors errors = errors_of(live.peaks);
  json.update({{"live_rows_used", errors.rows},
               {"live_mape_pct", errors.mape_pct},
               {"live_p90_pct", errors.p90_pct},
               {"live_other_phases", live.other_phases},
               {"live_other_after_step", live.other_after_step}});
}

nlohmann::json to_json(const Validation& validation) {
  nlohmann::json json = to_json(errors_of(validation.throughput), errors_of(validation.memory));
  json["rows"] = validation.rows;
  json["rows_skipped"] = validation.skipped;
  json["false_fit"] = validation.verdicts.false_fit_rate();
  json["wasted_headroom"] = validation.verdicts.wasted_rate();
  if (!validation.live.peaks.empty()) add_live(validation.live, json);
  const auto throughput = errors_by_source(validation.throughput);
  auto memory = errors_by_source(validation.memory);
  for (const auto& [source, errors] : throughput) json["per_source"][source] = to_json(errors, memory[source]);
  for (const auto& [source, errors] : memory)
    if (!throughput.contains(source)) json["per_source"][source] = to_json({}, errors);
  return json;
}

std::string errors_text(const std::string& title, const std::vector<Pair>& pairs) {
  std::string text = fmt::format("{:<58} {:>5} {:>8} {:>8} {:>8}\n", title, "rows", "MAPE", "bias", "p90");
  for (const auto& [source, errors] : errors_by_source(pairs)) text += line(source, errors);
  return text + line("all", errors_of(pairs)) + "\n";
}

std::string to_text(const Validation& validation) {
  std::string text = errors_text("throughput, % of measured", validation.throughput) +
                     errors_text("peak memory, % of measured", validation.memory);
  if (!validation.live.peaks.empty())
    text += errors_text("live tensor bytes, peak", validation.live.peaks) +
            fmt::format("live tensor bytes: {} peaks in another phase, {} rows with other bytes after the step\n\n",
                        validation.live.other_phases, validation.live.other_after_step);
  const FitVerdicts& v = validation.verdicts;
  text += fmt::format("fits: {} of {} runs that ran out of memory were said to fit, {} of {} that ran were not\n",
                      v.false_fits, v.not_fitting, v.wasted, v.fitting);
  text += "\nfurthest off (rows are counted over all files)\n";
  for (const Pair& pair : worst(validation.throughput, 8))
    text += fmt::format("  row {:<5} {:<40.40} predicted {:>9.1f} measured {:>9.1f} {:>+7.1f} %\n", pair.row + 1,
                        pair.source, pair.predicted, pair.measured, 100 * pair.error());
  text += "\nnot used\n";
  for (const auto& [reason, rows] : validation.skipped) text += fmt::format("  {:>5}  {}\n", rows, reason);
  return text;
}

}  // namespace foreshard::sim::validation
