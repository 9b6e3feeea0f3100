#include <fmt/format.h>

#include <cmath>

#include "sim/validation/left_out.hpp"
#include "sim/validation/score.hpp"
#include "sim/validation/validate.hpp"

namespace foreshard::sim::validation {
namespace {

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

void add_live(const LiveMemory& live, nlohmann::json& json) {
  const Errors errors = errors_of(live.peaks);
  json.update({{"live_rows_used", errors.rows},
               {"live_mape_pct", errors.mape_pct},
               {"live_p90_pct", errors.p90_pct},
               {"live_other_phases", live.other_phases},
               {"live_other_after_step", live.other_after_step}});
}

/// A score with what is asked of it.
struct Score {
  const char* key;
  const char* what;
  double asked, reached;
  std::size_t rows;
};

/// Of what there are rows for.
std::vector<Score> scores_of(const Validation& v) {
  const Errors all = errors_of(v.throughput), large = errors_of(above(v.throughput, 256));
  const Errors ratios = errors_of(scaling_ratios(v.throughput)), scaled = errors_of(with_one_scale(v.throughput));
  const Errors full = errors_of(with_adapters(v.memory, false)), adapters = errors_of(with_adapters(v.memory, true));
  const FitVerdicts& fits = v.verdicts;
  std::vector<Score> scores{
      {"throughput_mape_pct", "throughput, mean error", 2.5, all.mape_pct, all.rows},
      {"throughput_bias_pct", "throughput, bias", 1, std::abs(all.bias_pct), all.rows},
      {"throughput_p90_pct", "throughput, nine of ten within", 6, all.p90_pct, all.rows},
      {"large_mape_pct", "throughput above 256 GPUs, mean error", 7, large.mape_pct, large.rows},
      {"scaling_mape_pct", "time with n GPUs over time with 8, mean error", 2, ratios.mape_pct, ratios.rows},
      {"scaling_p90_pct", "time with n GPUs over time with 8, nine of ten within", 5, ratios.p90_pct, ratios.rows},
      {"scaled_mape_pct", "throughput after one scale a source and GPU, mean error", 5, scaled.mape_pct, all.rows},
      {"memory_full_mape_pct", "peak memory of full training, mean error", 4, full.mape_pct, full.rows},
      {"memory_full_p90_pct", "peak memory of full training, nine of ten within", 8, full.p90_pct, full.rows},
      {"memory_adapters_mape_pct", "peak memory with LoRA or QLoRA, mean error", 6, adapters.mape_pct, adapters.rows},
      {"false_fit_pct", "said to fit, of runs that ran out of memory", 0, 100 * fits.false_fit_rate(),
       fits.not_fitting},
      {"wasted_headroom_pct", "said not to fit, of runs that ran", 5, 100 * fits.wasted_rate(), fits.fitting}};
  std::erase_if(scores, [](const Score& score) { return score.rows == 0; });
  return scores;
}

nlohmann::json to_json(const std::vector<Score>& scores) {
  nlohmann::json json;
  for (const Score& s : scores) json[s.key] = {{"asked", s.asked}, {"reached", s.reached}, {"rows", s.rows}};
  return json;
}

std::string scores_text(const Validation& v) {
  const std::vector<Score> scores = scores_of(v);
  if (scores.empty()) return "";
  std::string text = fmt::format("{:<58} {:>5} {:>8} {:>8}\n", "scores, %", "rows", "asked", "reached");
  for (const Score& s : scores)
    text += fmt::format("{:<58} {:>5} {:>8.1f} {:>8.1f}\n", s.what, s.rows, s.asked, s.reached);
  return text + fmt::format(
                    "{} rows read, {} with throughput used; {:.0f} % of them within their error bars; {} "
                    "constants fitted\n\n",
                    v.rows, v.throughput.size(), 100 * coverage(v.throughput), v.fitted_constants);
}

/// What the fits that did not see a source said of it, which is not found by this run.
std::string left_out_text() {
  std::string text =
      fmt::format("{:<58} {:>5} {:>8} {:>8} {:>8} {:>8}\n", "throughput of a source left out of the fit, %", "rows",
                  "MAPE", "bias", "p90", "scaled");
  const auto line = [&](const std::string& name, const LeftOut& e) {
    text += fmt::format("{:<58.58} {:>5} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f}\n", name, e.rows, e.mape_pct, e.bias_pct,
                        e.p90_pct, e.scaled_mape_pct);
  };
  for (const auto& [source, of_source] : left_out_sources()) line(source, of_source);
  const LeftOut all = left_out_in_all(left_out_sources());
  return text + fmt::format("{:<58} {:>5} {:>8.1f} {:>8.1f} {:>8} {:>8.1f}\n{:<58} {:>5} {:>8.1f} {:>26.1f}\n\n", "all",
                            all.rows, all.mape_pct, all.bias_pct, "", all.scaled_mape_pct, "asked", "", 8.0, 5.0);
}

std::string errors_text(const std::string& title, const std::vector<Pair>& pairs) {
  if (pairs.empty()) return "";
  std::string text = fmt::format("{:<58} {:>5} {:>8} {:>8} {:>8}\n", title, "rows", "MAPE", "bias", "p90");
  for (const auto& [source, errors] : errors_by_source(pairs)) text += line(source, errors);
  return text + line("all", errors_of(pairs)) + "\n";
}

}  // namespace

nlohmann::json to_json(const Validation& validation) {
  nlohmann::json json = to_json(errors_of(validation.throughput), errors_of(validation.memory));
  json["rows"] = validation.rows;
  json["fitted_constants"] = validation.fitted_constants;
  json["within_error_bars"] = coverage(validation.throughput);
  json["scores"] = to_json(scores_of(validation));
  if (!validation.event_throughput.empty())
    json["event"] = to_json(errors_of(validation.event_throughput), errors_of(validation.event_memory));
  for (const auto& [source, of_source] : left_out_sources())
    json["left_out"][source] = {{"rows", of_source.rows}, {"mape_pct", of_source.mape_pct}};
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

std::string to_text(const Validation& validation) {
  std::string text = errors_text("throughput, % of measured", validation.throughput) +
                     errors_text("peak memory, % of measured", validation.memory);
  if (!validation.live.peaks.empty())
    text += errors_text("live tensor bytes, peak", validation.live.peaks) +
            fmt::format("live tensor bytes: {} peaks in another phase, {} rows with other bytes after the step\n\n",
                        validation.live.other_phases, validation.live.other_after_step);
  text += errors_text("throughput by simulated steps", validation.event_throughput) +
          errors_text("peak memory by simulated steps", validation.event_memory);
  if (validation.rows > 0) text += left_out_text();
  text += scores_text(validation);
  if (validation.rows == 0) return text;
  const FitVerdicts& v = validation.verdicts;
  text += fmt::format("fits: {} of {} runs that ran out of memory were said to fit, {} of {} that ran were not\n",
                      v.false_fits, v.not_fitting, v.wasted, v.fitting);
  text += "\nfurthest off (rows are counted over all files)\n";
  for (const Pair& pair : worst(validation.throughput, 8))
    text += fmt::format("  row {:<5} {:<40.40} predicted {:>9.1f} measured {:>9.1f} {:>+7.1f} %\n", pair.row + 1,
                        pair.source, pair.predicted, pair.measured, 100 * pair.error());
  text += "\nnot used\n";
  for (const auto& [reason, rows] : validation.skipped) text += fmt::format("  {:>5}  {}\n", rows, reason);
  if (!validation.not_simulated.empty()) text += "\nnot simulated\n";
  for (const auto& [reason, rows] : validation.not_simulated) text += fmt::format("  {:>5}  {}\n", rows, reason);
  return text;
}

}  // namespace foreshard::sim::validation
