#pragma once
#include <string>

#include "sim/planner/run_cost.hpp"
#include "sim/planner/search.hpp"
#include "sim/validation/error_bars.hpp"

namespace foreshard::sim::planner {

/// Useful work of a step on all GPUs: palm's count of FLOPs (flop_conventions.hpp), without gradients of what is
/// frozen; of it what is counted for masked pairs of tokens.
struct StepFlops {
  double counted = 0, masked = 0;
};

/// What a search was made for.
struct SearchSubject {
  const Config& config;
  const plan::Settings& base;
  const Cluster& cluster;
  const Space& space;
  RunLength run;
  int threads = 1;
  double tolerance = 0;
  int rows = 20;                                ///< of the Pareto set, in text
  std::vector<Runtime> runtimes{Runtime::own};  ///< of the space's plans
  bool compiled = false;                        ///< PyTorch's blocks
  StepFlops step_flops;                         ///< useful work of a step, see step_flops_of
};

/// The flags that a user adds for a point, in one line.
std::string command_of(const Point& point, const Config& config);

/// For people: how many plans were left out and why, the best, the Pareto set; each plan as the keys that make it.
std::string search_text(const SearchResult& result, const SearchSubject& subject);

/// One JSON object with the same; numbers of rejected plans by reason.
std::string search_json(const SearchResult& result, const SearchSubject& subject);

/// A line for each plan of the space: its fate, the reason in words, bounds, what simulation found, and its keys.
std::string search_csv(const SearchResult& result, const SearchSubject& subject);

StepFlops step_flops_of(const plan::Settings& base);

/// A plan's useful work a GPU and second, and as a part of its peak.
struct Utilization {
  double flops_per_s = 0, part = 0;
  /// Under 5 % or over 75 % of the peak: no run that anyone published reached that, so some input is probably wrong.
  bool is_plausible() const { return part >= 0.05 && part <= 0.75; }
};
Utilization utilization_of(const SearchSubject& subject, const Point& point, double step_s);
/// The same without what is masked: what is judged.
Utilization done_utilization_of(const SearchSubject& subject, const Point& point, double step_s);
std::string warning_text(const Utilization& done);

/// The memory found may not fit: with its error bar it exceeds the device. Never of our own runtime, whose is exact.
bool is_tight(const Candidate& candidate, const SearchSubject& subject);

/// Of the best plans of the profiles, those whose steps differ from the fastest's by less than the error bar of either
/// time, the fastest first; empty where it stands alone.
std::vector<Runtime> not_told_apart(const SearchResult& result, const SearchSubject& subject);

/// How far the step time of a plan is to be trusted.
validation::ErrorBar step_time_error_bar(const SearchSubject& subject, const Point& point);

/// The runtimes' names, with commas.
std::string runtimes_text(const SearchSubject& subject);

/// Why a plan is not among the results.
std::string reason_of(const SearchResult& result, const Candidate& candidate, std::int64_t device_bytes);

}  // namespace foreshard::sim::planner
