#include "sim/planner/what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace foreshard::sim::planner {
namespace {

using Json = nlohmann::ordered_json;
using plan::Lane;

struct Column {
  std::string value;
  std::optional<Prediction> prediction;
  std::string refusal;
};

Column column(std::string value, const Predict& predict, const std::string& flag) {
  Column made{.value = std::move(value)};
  try {
    made.prediction = predict(flag);
  } catch (const InputError& error) {
    made.refusal = error.what();
  }
  return made;
}

/// A row of the table: a number of each prediction, and how it is written.
struct Row {
  std::string name;
  std::function<double(const Prediction&)> of;
  std::function<std::string(double)> text;
};

std::string bytes(double value) { return bytes_text(std::llround(value)); }

std::vector<Row> rows() {
  const auto busy = [](Lane lane) {
    return [lane](const Prediction& p) { return p.lane_busy_s[static_cast<std::size_t>(lane)]; };
  };
  std::vector<Row> all{
      {"step", [](const Prediction& p) { return p.step_time_s; }, duration_text},
      {"TFLOP/s a rank", [](const Prediction& p) { return p.tflops_per_device; },
       [](double value) { return fmt::format("{:.4g}", value); }},
      {"compute busy", busy(Lane::compute), duration_text},
      {"gather busy", busy(Lane::gather), duration_text},
      {"reduce busy", busy(Lane::reduce), duration_text},
      {"replicate busy", busy(Lane::replicate), duration_text},
      {"copy busy", busy(Lane::copy), duration_text},
      {"exposed communication", [](const Prediction& p) { return p.exposed_comm_s; }, duration_text},
      {"memory", [](const Prediction& p) { return static_cast<double>(p.arena_bytes + p.process_base_bytes); }, bytes}};
  for (std::size_t i = 0; i < trace::memory_class_count; ++i)
    all.push_back({"  " + std::string(plan::name_of(static_cast<plan::MemoryClass>(i))),
                   [i](const Prediction& p) { return static_cast<double>(p.peak.bytes[i]); }, bytes});
  all.push_back({"host memory", [](const Prediction& p) { return static_cast<double>(p.host_arena_bytes); }, bytes});
  return all;
}

std::string difference(double value, double before) {
  if (value == before) return "=";
  return before == 0 ? "new" : fmt::format("{:+.1f} %", 100 * (value / before - 1));
}

std::string table_row(const Row& row, const std::vector<Column>& columns) {
  const double before = row.of(*columns.front().prediction);
  bool any = before != 0;
  std::string text = fmt::format("  {:<24}{:>12}", row.name, row.text(before));
  for (std::size_t i = 1; i < columns.size(); ++i) {
    if (!columns[i].prediction) continue;
    const double value = row.of(*columns[i].prediction);
    any |= value != 0;
    text += fmt::format("{:>12}{:>10}", row.text(value), difference(value, before));
  }
  return any ? text + "\n" : "";
}

std::string verdicts(const std::vector<Column>& columns) {
  if (!columns.front().prediction->gpu) return "";
  std::string text = fmt::format("  {:<24}", "fits");
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].prediction)
      text += fmt::format("{:>12}{:>{}}", columns[i].prediction->fits() ? "yes" : "NO", "", i > 0 ? 10 : 0);
  return text + "\n";
}

std::string table(const WhatIf& what_if, const std::vector<Column>& columns) {
  std::string text = fmt::format("what if {} were\n  {:<24}", what_if.key, "");
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].prediction) text += fmt::format("{:>12}{:>{}}", columns[i].value, "", i > 0 ? 10 : 0);
  text += "\n";
  for (const Row& row : rows()) text += table_row(row, columns);
  text += verdicts(columns);
  for (const Column& column : columns)
    if (!column.prediction)
      text += fmt::format("\n{} = {}: not possible\n  {}\n", what_if.key, column.value, column.refusal);
  return text;
}

std::string as_json(const WhatIf& what_if, const std::vector<Column>& columns) {
  Json values = Json::array();
  for (const Column& column : columns) {
    Json entry{{"value", column.value}};
    if (!column.prediction) {
      entry["refused"] = column.refusal;
    } else {
      const Prediction& p = *column.prediction;
      entry["step_time_s"] = p.step_time_s;
      entry["tflops_per_device"] = p.tflops_per_device;
      entry["exposed_comm_s"] = p.exposed_comm_s;
      entry["memory_bytes"] = p.arena_bytes + p.process_base_bytes;
      entry["host_memory_bytes"] = p.host_arena_bytes;
      entry["fits"] = p.fits();
    }
    values.push_back(std::move(entry));
  }
  return json_text(Json{{"schema", 1}, {"key", what_if.key}, {"values", values}}) + "\n";
}

}  // namespace

WhatIf read_what_if(const Config& config, const std::string& text) {
  const auto at = text.find('=');
  WhatIf what_if{.key = std::string(trimmed(text.substr(0, at)))};
  if (at != text.npos)
    for (const std::string_view value : split(std::string_view(text).substr(at + 1), ','))
      if (!trimmed(value).empty()) what_if.values.emplace_back(trimmed(value));
  if (what_if.key.starts_with("--")) what_if.key.erase(0, 2);
  if (!config.has(what_if.key) || what_if.key.find('.') == what_if.key.npos)
    throw InputError(ExitCode::usage, fmt::format("--what-if={}: `{}` is no key of this command; --help has them\n  "
                                                  "expected: key=value,value,…",
                                                  text, what_if.key));
  if (what_if.values.empty())
    throw InputError(ExitCode::usage, fmt::format("--what-if={}: no values\n  expected: key=value,value,…", text));
  return what_if;
}

std::string what_if_report(const WhatIf& what_if, const std::string& as_it_is, const Predict& predict, bool json) {
  std::vector<Column> columns{{.value = as_it_is, .prediction = predict(""), .refusal = ""}};
  for (const std::string& value : what_if.values)
    columns.push_back(column(value, predict, fmt::format("--{}={}", what_if.key, value)));
  return json ? as_json(what_if, columns) : table(what_if, columns);
}

}  // namespace foreshard::sim::planner
