#include "sim/validation/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "sim/validation/error_bars.hpp"
#include "sim/validation/event_level.hpp"
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
  std::optional<Pair> event_throughput, event_memory;
  std::string not_simulated;
};

std::string first_line(const std::string& message) { return message.substr(0, message.find('\n')); }

/// Not where settings that decide memory stand in the notes alone, each row adding one to those before it.
bool can_be_scored(const PublishedRow& row) {
  return row.peak_mem_gib && row.exclude.empty() && row.notes.find("cumulative step: ") == std::string::npos;
}

/// All of a row that stays the same where only GPUs are added.
std::string series_of(const PublishedRow& row) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", row.source, row.ref, row.model, row.seq_len.value_or(0), row.gpu,
                     row.gpu_mem_gb.value_or(0), row.precision, row.activation_ckpt, row.compile_or_flash);
}

Pair pair_of(const PublishedRow& row, const PublishedRun& run, const closed_form::Profile& profile) {
  const std::string gpu = profile.gpu(run.gpu, run.gpu_memory_gb).name, style = style_of(run, profile);
  return {.source = row.source,
          .gpu = gpu,
          .style = style,
          .gpus = run.gpus,
          .micro_batch = run.micro_batch,
          .adapters = run.lora,
          .series = series_of(row),
          .error_bar_pct = error_bar_pct(gpu, style)};
}

std::optional<Pair> with_prediction(std::optional<Pair> pair, double predicted) {
  if (pair) pair->predicted = predicted;
  return pair;
}

void simulate(const PublishedRun& run, const closed_form::Profile& profile, Outcome& outcome) {
  const auto said = event_level(run, profile);
  if (const auto* skip = std::get_if<Skip>(&said)) {
    outcome.not_simulated = skip->reason;
    return;
  }
  const auto& steps = std::get<EventLevel>(said);
  outcome.event_throughput = with_prediction(outcome.throughput, steps.tokens_per_s);
  if (steps.peak_bytes) outcome.event_memory = with_prediction(outcome.memory, *steps.peak_bytes);
}

Outcome predicted(const PublishedRow& row, const PublishedRun& as_read, const closed_form::Profile& profile,
                  Level level) {
  Outcome outcome;
  const PublishedRun run = completed(as_read, profile);
  const Pair blank = pair_of(row, run, profile);
  if (const auto measured = measured_tokens_per_s(row, run, peak_tflops(run, profile))) {
    outcome.throughput = blank;
    outcome.throughput->predicted = predicted_tokens_per_s(run, profile);
    outcome.throughput->measured = *measured;
  }
  if (can_be_scored(row) && run.peak_kind != PeakKind::unknown && !run.offloads) {
    outcome.memory = blank;
    outcome.memory->predicted = predicted_peak_bytes(run, profile);
    outcome.memory->measured = *row.peak_mem_gib * gibibyte;
  }
  const bool ran = outcome.throughput || row.peak_mem_gib;
  // Whether blocks are recomputed decides it: rows that ran and do not say are not judged.
  const bool known = row.oom == "yes" || (ran && !row.activation_ckpt.empty());
  if (known && !run.offloads) outcome.fits = {fits(row.oom == "yes" ? as_read : run, profile), row.oom != "yes"};
  if (!outcome.throughput) outcome.skipped = "no throughput printed";
  if (level == Level::event && (outcome.throughput || outcome.memory)) simulate(run, profile, outcome);
  return outcome;
}

Outcome outcome_of(const PublishedRow& row, const closed_form::Profile& profile, Level level) {
  const auto read = interpret(row);
  if (const auto* skip = std::get_if<Skip>(&read)) return {.skipped = skip->reason};
  try {
    return predicted(row, std::get<PublishedRun>(read), profile, level);
  } catch (const InputError& error) {
    return {.skipped = first_line(error.what())};
  }
}

std::string number(const std::optional<Pair>& pair, double unit) {
  return pair ? fmt::format("{:.2f}", pair->predicted / unit) : "";
}
std::string percent(const std::optional<Pair>& pair) { return pair ? fmt::format("{:.2f}", 100 * pair->error()) : ""; }

std::string error_bar(const std::optional<Pair>& pair) {
  return pair ? fmt::format("{:.1f}", pair->error_bar_pct) : "";
}
std::string verdict(const std::optional<std::pair<bool, bool>>& fits) {
  return !fits ? "" : fits->first ? "yes" : "no";
}
std::string class_of(const std::optional<Pair>& pair) { return pair ? pair->gpu + " " + pair->style : ""; }

void add_columns(CsvTable& table, Level level) {
  for (const char* column : {"predicted_tokens_per_s_per_gpu", "error_pct", "error_bar_pct", "class",
                             "predicted_peak_mem_gib", "memory_error_pct", "predicted_to_fit", "skipped"})
    table.header.emplace_back(column);
  if (level == Level::closed_form) return;
  for (const char* column : {"event_tokens_per_s_per_gpu", "event_error_pct", "event_peak_mem_gib",
                             "event_memory_error_pct", "not_simulated"})
    table.header.emplace_back(column);
}

void add_event_level(const Outcome& outcome, std::vector<std::string>& fields, Validation& into) {
  for (std::string field :
       {number(outcome.event_throughput, 1), percent(outcome.event_throughput), number(outcome.event_memory, gibibyte),
        percent(outcome.event_memory), outcome.not_simulated})
    fields.push_back(std::move(field));
  if (outcome.event_throughput) into.event_throughput.push_back(*outcome.event_throughput);
  if (outcome.event_memory) into.event_memory.push_back(*outcome.event_memory);
  if (!outcome.not_simulated.empty()) ++into.not_simulated[outcome.not_simulated];
}

}  // namespace

void validate(CsvTable& table, const closed_form::Profile& profile, Validation& into, Level level) {
  if (is_live_memory(table)) return validate_live_memory(table, into.live);
  const std::vector<PublishedRow> rows = published_rows(table);
  into.fitted_constants = profile.fitted();
  add_columns(table, level);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Outcome outcome = outcome_of(rows[i], profile, level);
    for (std::string field : {number(outcome.throughput, 1), percent(outcome.throughput), error_bar(outcome.throughput),
                              class_of(outcome.throughput), number(outcome.memory, gibibyte), percent(outcome.memory),
                              verdict(outcome.fits), outcome.skipped})
      table.rows[i].push_back(std::move(field));
    if (level == Level::event) add_event_level(outcome, table.rows[i], into);
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

}  // namespace foreshard::sim::validation
