#include "sim/validation/error_bars.hpp"

#include <nlohmann/json.hpp>
#include <string_view>

namespace foreshard::embedded {
extern const std::string_view error_bars;
}

namespace foreshard::sim::validation {
namespace {

const nlohmann::json& bars() {
  static const nlohmann::json json = nlohmann::json::parse(embedded::error_bars);
  return json;
}

bool was_measured(const std::string& gpu) {
  for (const auto& [name, bar] : bars().at("measured").items())
    if (name.starts_with(gpu + " ")) return true;
  return false;
}

}  // namespace

double error_bar_pct(const std::string& gpu, const std::string& style) {
  const auto& measured = bars().at("measured");
  if (const auto found = measured.find(gpu + " " + style); found != measured.end()) return found->at("pct");
  return bars().at(was_measured(gpu) ? "of_unseen_software" : "of_an_unmeasured_gpu").at("pct");
}

}  // namespace foreshard::sim::validation
