#include "sim/validation/left_out.hpp"

#include <nlohmann/json.hpp>
#include <string_view>

namespace foreshard::embedded {
extern const std::string_view left_out;
}

namespace foreshard::sim::validation {

const std::map<std::string, LeftOut>& left_out_sources() {
  static const std::map<std::string, LeftOut> sources = [] {
    std::map<std::string, LeftOut> read;
    const nlohmann::json json = nlohmann::json::parse(embedded::left_out);
    for (const auto& [source, of_source] : json.items())
      read[source] = {.rows = of_source.at("rows"),
                      .mape_pct = of_source.at("mape_pct"),
                      .bias_pct = of_source.at("bias_pct"),
                      .p90_pct = of_source.at("p90_pct"),
                      .scaled_mape_pct = of_source.at("scaled_mape_pct")};
    return read;
  }();
  return sources;
}

LeftOut left_out_in_all(const std::map<std::string, LeftOut>& sources) {
  LeftOut all;
  for (const auto& [source, of_source] : sources) {
    const auto rows = static_cast<double>(of_source.rows);
    all.rows += of_source.rows;
    all.mape_pct += rows * of_source.mape_pct;
    all.bias_pct += rows * of_source.bias_pct;
    all.scaled_mape_pct += rows * of_source.scaled_mape_pct;
  }
  if (all.rows == 0) return all;
  for (double* sum : {&all.mape_pct, &all.bias_pct, &all.scaled_mape_pct}) *sum /= static_cast<double>(all.rows);
  return all;
}

}  // namespace foreshard::sim::validation
