#pragma once
#include <string>

namespace foreshard::sim::validation {

/// How far a prediction of throughput is to be trusted, in percent: nine of ten published runs of the same class are
/// within it. Of a GPU and style (see style_of) that were measured together, by how far such rows are off; of either
/// alone, by how far sources are off that a fit did not see; of a GPU never measured, an assumption. The numbers are in
/// profiles/error_bars.json.
double error_bar_pct(const std::string& gpu, const std::string& style);

}  // namespace foreshard::sim::validation
