#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "sim/planner/evaluator.hpp"
#include "sim/planner/space.hpp"

namespace foreshard::sim::planner {

/// What became of a point.
enum class Fate : std::uint8_t {
  simulated,       ///< and fits
  too_large,       ///< simulated, and does not fit
  cannot_fit,      ///< by its bound
  cannot_be_best,  ///< by its bound: some simulated plan is as good in time, memory and GPUs, or nearly
  not_simulated    ///< might be better, but there have been as many simulations as were allowed
};

struct Candidate {
  Point point;
  Bound bound;
  Fate fate = Fate::cannot_be_best;
  Evaluation found;    ///< if simulated
  std::size_t by = 0;  ///< cannot_be_best: the index of that plan
  bool is_simulated() const { return fate == Fate::simulated || fate == Fate::too_large; }
};

struct SearchOptions {
  std::int64_t memory_bytes = 0;  ///< of a device
  int threads = 1;
  /// A plan is not simulated that can be better than a simulated one by no more than this part in step time and memory.
  double tolerance = 0.005;
  std::int64_t simulations = INT64_MAX;  ///< at most
  /// Called in the calling thread after each round, with how many plans have been simulated, and the fastest step so
  /// far, 0 where none fits.
  std::function<void(std::int64_t, double)> progress = {};
};

struct SearchResult {
  std::vector<Candidate> candidates;   ///< in the order of the space
  std::vector<std::size_t> pareto;     ///< no other is as good in step time, memory and GPUs; by step time
  double bound_s = 0, simulate_s = 0;  ///< wall clock
  /// No plan that was not simulated is better than all simulated ones by more than this part in time and memory; 1: any
  /// may be.
  double complete_within = 1;
  double least_not_simulated_s = 0;  ///< the step of no plan of that fate is shorter
  std::size_t count(Fate fate) const;
  /// The fastest that fits (of several the one with less memory, then fewer GPUs); none if nothing does.
  const Candidate* best() const { return pareto.empty() ? nullptr : &candidates[pareto.front()]; }
  /// The same of one runtime's plans.
  const Candidate* best_of(Runtime runtime) const;
  /// Of those that do not fit, the one that lacks least.
  const Candidate* nearest_miss() const;
};

using MakeEvaluator = std::function<std::unique_ptr<Evaluator>()>;

/// Of searches of different points as if they had been one; fates stay as each found them.
SearchResult joined(std::vector<SearchResult> results);

/// Bounds all points, simulates those that may be best, and compares: first those that may be much better than what is
/// known, then, as long as simulations are left, those that may be a little better. Points are taken in rounds of a
/// fixed size, in order of their bounds, and a round decides by the rounds before it, so that the result is the same
/// whatever the number of threads. Each thread has an evaluator of its own. Throws what an evaluator threw.
SearchResult search(std::vector<Point> points, const SearchOptions& options, const MakeEvaluator& make_evaluator);

}  // namespace foreshard::sim::planner
