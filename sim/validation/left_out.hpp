#pragma once
#include <cstddef>
#include <map>
#include <string>

namespace foreshard::sim::validation {

/// How far throughput was off for a source whose rows no constant was fitted to, in percent of what was measured.
struct LeftOut {
  std::size_t rows = 0;
  double mape_pct = 0, bias_pct = 0, p90_pct = 0;
  double scaled_mape_pct = 0;  ///< after one scale a GPU
};

/// By source, as `refit_closed_form.py --without each --write` found it: sim/profiles/left_out.json.
const std::map<std::string, LeftOut>& left_out_sources();

/// Over the rows of all sources.
LeftOut left_out_in_all(const std::map<std::string, LeftOut>& sources);

}  // namespace foreshard::sim::validation
