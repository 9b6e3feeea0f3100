#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "trace/comparison.hpp"

namespace foreshard::trace {
namespace {

using Json = nlohmann::ordered_json;

std::string error_text(double error) { return std::isfinite(error) ? fmt::format("{:+.1f} %", 100 * error) : "-"; }

std::string count_text(double predicted, double measured) {
  return predicted == measured ? fmt::format("{:g}", measured) : fmt::format("{:g} / {:g}", predicted, measured);
}

std::string bytes_pair(double predicted, double measured) {
  const auto text = [](double bytes) { return bytes_text(static_cast<std::int64_t>(std::llround(bytes))); };
  return predicted == measured ? text(measured) : text(predicted) + " / " + text(measured);
}

std::string phase_line(const TimeRow& row) {
  return fmt::format("  {:<24}{:>12}{:>12}{:>10}\n", row.name, duration_text(row.predicted_s),
                     duration_text(row.measured_s), error_text(row.error()));
}

std::string kind_line(const TimeRow& row) {
  return fmt::format("  {:<24}{:>12}{:>12}{:>10}{:>10}  {}\n", row.name, duration_text(row.predicted_s),
                     duration_text(row.measured_s), error_text(row.error()),
                     count_text(row.predicted_count, row.measured_count),
                     bytes_pair(row.predicted_bytes, row.measured_bytes));
}

std::string exact_line(const ExactRow& row) {
  const double error = static_cast<double>(row.predicted - row.measured) / static_cast<double>(row.measured);
  const std::string verdict = row.predicted == row.measured ? "equal" : error_text(error);
  return fmt::format("  {:<30}{:>20}{:>20}  {}\n", row.name, row.predicted, row.measured, verdict);
}

std::string verdict_text(const Comparison& comparison) {
  const auto faults = comparison.faults();
  if (faults.empty())
    return fmt::format("verdict: the prediction holds (step time {}, tolerance {:.1f} %)\n",
                       error_text(comparison.step.error()), 100 * comparison.tolerance);
  std::string text = "verdict: the prediction does not hold\n";
  for (const std::string& fault : faults) text += "  - " + fault + "\n";
  return text;
}

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const TimeRow& row) {
  return {{"name", row.name},
          {"predicted_s", finite(row.predicted_s)},
          {"measured_s", finite(row.measured_s)},
          {"error", finite(row.error())},
          {"predicted_count", row.predicted_count},
          {"measured_count", row.measured_count},
          {"predicted_bytes", row.predicted_bytes},
          {"measured_bytes", row.measured_bytes}};
}

Json json_of(const ExactRow& row) {
  return {{"name", row.name},
          {"predicted", row.predicted},
          {"measured", row.measured},
          {"must_be_equal", row.must_be_equal}};
}

template <class Rows>
Json array_of(const Rows& rows) {
  Json array = Json::array();
  for (const auto& row : rows) array.push_back(json_of(row));
  return array;
}

}  // namespace

std::string text_of(const Comparison& comparison) {
  if (comparison.divergence) return verdict_text(comparison);
  std::string text = fmt::format("plan {}: equal on both sides\n\n", comparison.measured_hash);
  text += fmt::format("  {:<24}{:>12}{:>12}{:>10}\n", "phase", "predicted", "measured", "error");
  for (const TimeRow& row : comparison.phases) text += phase_line(row);
  text += phase_line(comparison.step);
  text += fmt::format("\n  {:<24}{:>12}{:>12}{:>10}{:>10}  {}\n", "op kind, per step", "predicted", "measured", "error",
                      "count", "bytes");
  for (const TimeRow& row : comparison.kinds) text += kind_line(row);
  text += fmt::format("\n  {:<30}{:>20}{:>20}\n", "memory and collectives", "predicted", "measured");
  for (const ExactRow& row : comparison.exact) text += exact_line(row);
  return text + "\n" + verdict_text(comparison);
}

Json json_of(const Comparison& comparison) {
  Json json{{"schema", "foreshard-compare"},
            {"schema_version", 1},
            {"holds", comparison.faults().empty()},
            {"faults", comparison.faults()},
            {"tolerance", comparison.tolerance},
            {"predicted_plan_hash", comparison.predicted_hash},
            {"measured_plan_hash", comparison.measured_hash}};
  json["divergence"] = comparison.divergence ? Json(*comparison.divergence) : Json(nullptr);
  if (comparison.divergence) return json;
  json["step"] = json_of(comparison.step);
  json["phases"] = array_of(comparison.phases);
  json["kinds"] = array_of(comparison.kinds);
  json["exact"] = array_of(comparison.exact);
  return json;
}

}  // namespace foreshard::trace
