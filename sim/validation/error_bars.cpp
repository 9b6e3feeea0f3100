#include "sim/validation/error_bars.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

namespace foreshard::embedded {
extern const std::string_view error_bars, torch_error_bars;
}

namespace foreshard::sim::validation {
namespace {

using Json = nlohmann::json;

const Json& bars() {
  static const Json json = Json::parse(embedded::error_bars);
  return json;
}

const Json& torch_bars() {
  static const Json json = Json::parse(embedded::torch_error_bars);
  return json;
}

bool was_measured(const std::string& gpu) {
  for (const auto& [name, bar] : bars().at("measured").items())
    if (name.starts_with(gpu + " ")) return true;
  return false;
}

ErrorBar of_rows(const Json& bar, const std::string& of) {
  const auto rows = bar.at("rows").get<std::size_t>();
  return {bar.at("pct"), rows, fmt::format("p90 of {} published runs: {}", rows, of)};
}

/// A GPU whose runs say little of this one, or no GPU.
ErrorBar of_none(const std::string& gpu, const std::string& style) {
  if (was_measured(gpu))
    return {bars().at("of_unseen_software").at("pct"), 0,
            fmt::format("no published runs of {} on {}; p90 of sources that a fit did not see", style, gpu)};
  return {bars().at("of_an_unmeasured_gpu").at("pct"), 0, fmt::format("assumed: no published run on {}", gpu)};
}

}  // namespace

ErrorBar torch_error_bar(const RunClass& run) {
  const Json& measured = torch_bars().at("measured");
  const std::string widest = run.gpu + " " + run.style, narrower = widest + (run.gated ? " gated" : " plain"),
                    nearest = narrower + (run.gpus > 8 ? " over 8 GPUs" : " up to 8 GPUs"), other = run.gpu + " eager";
  for (const std::string& name : {nearest, narrower, widest, other})
    if (const auto found = measured.find(name); found != measured.end()) return of_rows(*found, name);
  return unseen_software_error_bar(run);
}

ErrorBar unseen_software_error_bar(const RunClass& run) { return of_none(run.gpu, run.style); }

ErrorBar memory_error_bar(bool lora) {
  const auto found = bars().at("memory").find(lora ? "lora" : "full");
  if (found == bars().at("memory").end()) return {.basis = "no published runs"};
  return of_rows(*found, lora ? "peaks of LoRA" : "peaks of full training");
}

std::string torch_error_bar_command() { return torch_bars().at("command"); }
std::string error_bar_command() { return bars().at("command"); }

std::string text_of(const ErrorBar& bar) {
  return bar.pct > 0 ? fmt::format("±{:.2g} % ({})", bar.pct, bar.basis) : fmt::format("no error bar: {}", bar.basis);
}

nlohmann::ordered_json json_of(const ErrorBar& bar) {
  nlohmann::ordered_json json{{"pct", nullptr}, {"rows", bar.rows}, {"basis", bar.basis}};
  if (bar.pct > 0) json["pct"] = bar.pct;
  return json;
}

bool has_gated_layers(const model::Config& model) {
  if (const auto* t5 = std::get_if<model::T5Config>(&model))
    return t5->feed_forward != model::T5Config::FeedForward::relu;
  return std::holds_alternative<model::LlamaConfig>(model);
}

double error_bar_pct(const std::string& gpu, const std::string& style) {
  const auto& measured = bars().at("measured");
  const auto found = measured.find(gpu + " " + style);
  return found != measured.end() ? found->at("pct").get<double>() : of_none(gpu, style).pct;
}

}  // namespace foreshard::sim::validation
