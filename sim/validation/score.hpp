#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace foreshard::sim::validation {

/// A prediction beside a measurement of row `row`.
struct Pair {
  std::size_t row = 0;
  std::string source;
  double predicted = 0, measured = 0;
  std::string gpu, style;  ///< catalogue name; how what is no matrix product is computed
  int gpus = 0;
  std::int64_t micro_batch = 0;
  bool adapters = false;     ///< low-rank ones are trained, the model is not
  std::string series;        ///< all that stays the same where only GPUs are added
  double error_bar_pct = 0;  ///< within which nine of ten such rows are
  double error() const { return predicted / measured - 1; }
};

/// How far predictions are off, in percent of what was measured.
struct Errors {
  std::size_t rows = 0;
  double mape_pct = 0;  ///< mean of the magnitudes
  double bias_pct = 0;  ///< mean
  double p90_pct = 0;   ///< of ten rows, nine have no larger magnitude (the nearest rank)
};

Errors errors_of(const std::vector<Pair>& pairs);
std::map<std::string, Errors> errors_by_source(const std::vector<Pair>& pairs);

/// Each source's predictions on each GPU scaled by what brings their median to what was measured.
std::vector<Pair> with_one_scale(std::vector<Pair> pairs);

/// Of rows of throughput on more than 8 GPUs, beside the row of 8 GPUs that is like it (of the same micro-batch, if
/// there is one): time with that many over time with 8, each with its own batch.
std::vector<Pair> scaling_ratios(const std::vector<Pair>& pairs);

/// Those of more than `gpus` GPUs.
std::vector<Pair> above(const std::vector<Pair>& pairs, int gpus);

/// Those that train adapters, or those that do not.
std::vector<Pair> with_adapters(const std::vector<Pair>& pairs, bool adapters);

/// The part of `pairs` that are within their error bars.
double coverage(const std::vector<Pair>& pairs);

/// The `count` pairs that are furthest off, the worst first.
std::vector<Pair> worst(std::vector<Pair> pairs, std::size_t count);

/// What was said of runs that are known to fit or not to fit.
struct FitVerdicts {
  std::size_t fitting = 0, not_fitting = 0;  ///< rows known to fit, and not to
  std::size_t false_fits = 0;                ///< said to fit, and did not
  std::size_t wasted = 0;                    ///< said not to fit, and did
  void add(bool predicted, bool measured);
  double false_fit_rate() const { return not_fitting ? double(false_fits) / double(not_fitting) : 0; }
  double wasted_rate() const { return fitting ? double(wasted) / double(fitting) : 0; }
};

}  // namespace foreshard::sim::validation
