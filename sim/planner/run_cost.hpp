#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/config.hpp"

namespace foreshard::sim::planner {

/// A whole training run, as the user asked about it.
struct RunLength {
  double tokens = 0;          ///< 0: nobody asked
  double gpu_hour_price = 0;  ///< 0: not known
};

/// Declares the options --tokens and --gpu-hour-price.
void add_run_options(Config& config);
/// Throws InputError(usage) for a number of tokens that cannot be read.
RunLength read_run_length(const Config& config);

/// A number with a suffix K, M, B or T: "300B", "1.4T", "2e12". Nothing for anything else, or what is not positive.
std::optional<double> parse_tokens(std::string_view text);

/// What the run takes at one step time, as if nothing failed; and what is expected to fail in that time.
///
/// Failures: 2.34 to 6.50 of 1,000 node-days of eight GPUs, the two clusters of Kokolis et al., "Revisiting reliability
/// in large-scale machine learning research clusters", arXiv 2410.21680. Meant for runs of many nodes.
struct RunCost {
  double steps = 0, seconds = 0, gpu_hours = 0, price = 0;
  double failures_least = 0, failures_most = 0;
  double days() const { return seconds / 86400; }
};
RunCost run_cost(const RunLength& run, double step_s, double step_tokens, int gpus);

std::string text_of(const RunCost& cost);
nlohmann::ordered_json json_of(const RunCost& cost);

}  // namespace foreshard::sim::planner
