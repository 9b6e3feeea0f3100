#include "sim/planner/search.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <tuple>

#include "base/error.hpp"
#include "sim/planner/front.hpp"
#include "sim/planner/worker_pool.hpp"

namespace foreshard::sim::planner {
namespace {

constexpr std::size_t round_size = 64, bound_grain = 256;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Search {
 public:
  Search(std::vector<Point> points, const SearchOptions& options, const MakeEvaluator& make_evaluator)
      : options_(options), workers_(options.threads, make_evaluator) {
    for (Point& point : points) result_.candidates.push_back({.point = std::move(point)});
  }

  SearchResult run() {
    const auto start = std::chrono::steady_clock::now();
    bound();
    result_.bound_s = seconds_since(start);
    const std::vector<std::size_t> order = possible();
    for (const double tolerance : {0.2, 0.05, options_.tolerance})
      if (tolerance >= options_.tolerance && pass(order, tolerance)) result_.complete_within = tolerance;
    settle(order);
    result_.simulate_s = seconds_since(start) - result_.bound_s;
    result_.pareto = front_.members();
    return std::move(result_);
  }

 private:
  void bound() {
    workers_.for_each(result_.candidates.size(), bound_grain, [&](Evaluator& evaluator, std::size_t i) {
      result_.candidates[i].bound = evaluator.bound(result_.candidates[i].point);
    });
  }

  /// Those that may fit, the most promising first.
  std::vector<std::size_t> possible() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < result_.candidates.size(); ++i) {
      const bool fits = result_.candidates[i].bound.memory_bytes <= options_.memory_bytes;
      if (fits) order.push_back(i);
      if (!fits) result_.candidates[i].fate = Fate::cannot_fit;
    }
    std::ranges::sort(order, {}, [&](std::size_t i) {
      const Bound& bound = result_.candidates[i].bound;
      return std::tuple(bound.seconds, bound.memory_bytes, i);
    });
    return order;
  }

  static Cost least_of(const Candidate& candidate) {
    return {candidate.bound.seconds, candidate.bound.memory_bytes, candidate.point.gpus};
  }

  /// Simulates what may be better than what is known by more than `tolerance`. False: there were not enough
  /// simulations.
  bool pass(const std::vector<std::size_t>& order, double tolerance) {
    for (std::size_t next = 0; next < order.size();) {
      const std::vector<std::size_t> taken = round(order, next, tolerance);
      if (taken.empty() && next < order.size()) return false;
      simulate(taken);
    }
    return true;
  }

  /// The next of `order` that may be better; `next` moves behind them. None where no simulation is left.
  std::vector<std::size_t> round(const std::vector<std::size_t>& order, std::size_t& next, double tolerance) {
    std::vector<std::size_t> taken;
    const std::int64_t left = options_.simulations - simulations_;
    for (; next < order.size() && taken.size() < round_size; ++next) {
      const Candidate& candidate = result_.candidates[order[next]];
      if (candidate.is_simulated() || front_.as_good_as(least_of(candidate), 1 - tolerance)) continue;
      if (static_cast<std::int64_t>(taken.size()) >= left) break;
      taken.push_back(order[next]);
    }
    return taken;
  }

  /// Why the others were not simulated.
  void settle(const std::vector<std::size_t>& order) {
    for (const std::size_t index : order) {
      Candidate& candidate = result_.candidates[index];
      if (candidate.is_simulated()) continue;
      const auto by = front_.as_good_as(least_of(candidate), 1 - options_.tolerance);
      candidate.fate = by ? Fate::cannot_be_best : Fate::not_simulated;
      if (by) candidate.by = *by;
      if (!by && result_.least_not_simulated_s == 0) result_.least_not_simulated_s = candidate.bound.seconds;
    }
  }

  void simulate(const std::vector<std::size_t>& taken) {
    simulations_ += static_cast<std::int64_t>(taken.size());
    workers_.for_each(taken.size(), 1, [&](Evaluator& evaluator, std::size_t i) {
      Candidate& candidate = result_.candidates[taken[i]];
      candidate.found = evaluator.evaluate(candidate.point);
    });
    for (const std::size_t index : taken) {
      Candidate& candidate = result_.candidates[index];
      candidate.fate = candidate.found.memory_bytes <= options_.memory_bytes ? Fate::simulated : Fate::too_large;
      if (candidate.fate == Fate::simulated)
        front_.add({candidate.found.step_s, candidate.found.memory_bytes, candidate.point.gpus}, index);
      if (candidate.fate == Fate::simulated && (fastest_s_ == 0 || candidate.found.step_s < fastest_s_))
        fastest_s_ = candidate.found.step_s;
    }
    if (options_.progress && !taken.empty()) options_.progress(simulations_, fastest_s_);
  }

  const SearchOptions& options_;
  WorkerPool workers_;
  SearchResult result_;
  Front front_;
  std::int64_t simulations_ = 0;
  double fastest_s_ = 0;
};

std::int64_t needed_bytes(const Candidate& candidate) {
  return candidate.is_simulated() ? candidate.found.memory_bytes : candidate.bound.memory_bytes;
}

}  // namespace

std::size_t SearchResult::count(Fate fate) const {
  return static_cast<std::size_t>(std::ranges::count(candidates, fate, &Candidate::fate));
}

const Candidate* SearchResult::nearest_miss() const {
  const Candidate* nearest = nullptr;
  for (const Candidate& candidate : candidates) {
    const bool misses = candidate.fate == Fate::cannot_fit || candidate.fate == Fate::too_large;
    if (misses && (!nearest || needed_bytes(candidate) < needed_bytes(*nearest))) nearest = &candidate;
  }
  return nearest;
}

const Candidate* SearchResult::best_of(Runtime runtime) const {
  const auto cost = [](const Candidate& c) { return std::tuple(c.found.step_s, c.found.memory_bytes, c.point.gpus); };
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates)
    if (candidate.fate == Fate::simulated && candidate.point.runtime == runtime &&
        (!best || cost(candidate) < cost(*best)))
      best = &candidate;
  return best;
}

namespace {

void append(SearchResult& all, SearchResult one) {
  const std::size_t first = all.candidates.size();
  for (Candidate& candidate : one.candidates) {
    candidate.by += first;
    all.candidates.push_back(std::move(candidate));
  }
  for (const std::size_t index : one.pareto) all.pareto.push_back(first + index);
  all.bound_s += one.bound_s, all.simulate_s += one.simulate_s;
  all.complete_within = std::max(all.complete_within, one.complete_within);
  const bool left = one.least_not_simulated_s > 0, first_left = all.least_not_simulated_s == 0;
  if (left && (first_left || one.least_not_simulated_s < all.least_not_simulated_s))
    all.least_not_simulated_s = one.least_not_simulated_s;
}

}  // namespace

SearchResult joined(std::vector<SearchResult> results) {
  SearchResult all;
  all.complete_within = 0;
  for (SearchResult& one : results) append(all, std::move(one));
  Front front;
  for (const std::size_t index : all.pareto) {
    const Candidate& c = all.candidates[index];
    front.add({c.found.step_s, c.found.memory_bytes, c.point.gpus}, index);
  }
  all.pareto = front.members();
  return all;
}

SearchResult search(std::vector<Point> points, const SearchOptions& options, const MakeEvaluator& make_evaluator) {
  FORESHARD_EXPECT(options.threads >= 1, "a search has a thread");
  return Search(std::move(points), options, make_evaluator).run();
}

}  // namespace foreshard::sim::planner
