#include "sim/planner/search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <stdexcept>

#include "sim/planner/front.hpp"

namespace foreshard::sim::planner {
namespace {

/// Costs that are made up from the local batch, so that bounds are right but not tight.
class MadeUp final : public Evaluator {
 public:
  explicit MadeUp(std::atomic<int>& simulated) : simulated_(simulated) {}
  Evaluation evaluate(const Point& point) override {
    ++simulated_;
    if (point.local_batch < 0) throw std::runtime_error("made to fail");
    return cost(point, 1);
  }
  Bound bound(const Point& point) override {
    const Evaluation least = cost(point, 0.9);
    return {least.memory_bytes, least.step_s};
  }

  static Evaluation cost(const Point& point, double part) {
    std::mt19937 random(static_cast<unsigned>(point.local_batch));
    const double a = std::uniform_real_distribution<>(1, 10)(random),
                 b = std::uniform_real_distribution<>(1, 3)(random);
    return {.step_s = part * a, .memory_bytes = static_cast<std::int64_t>(part * 1e6 * b / a)};
  }

 private:
  std::atomic<int>& simulated_;
};

std::vector<Point> points(int count) {
  std::vector<Point> made;
  for (int i = 0; i < count; ++i) made.push_back({.gpus = 1 + i % 3, .local_batch = i});
  return made;
}

struct Outcome {
  SearchResult result;
  int simulated = 0;
};
Outcome searched(int count, int threads, double tolerance) {
  std::atomic<int> simulated = 0;
  SearchResult result = search(points(count), {.memory_bytes = 1'500'000, .threads = threads, .tolerance = tolerance},
                               [&] { return std::make_unique<MadeUp>(simulated); });
  return {std::move(result), simulated};
}

/// By comparing all with all.
std::vector<std::size_t> front_by_hand(int count) {
  std::vector<Cost> costs;
  for (const Point& point : points(count)) {
    const Evaluation e = MadeUp::cost(point, 1);
    costs.push_back({e.step_s, e.memory_bytes, point.gpus});
  }
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    bool beaten = costs[i].memory_bytes > 1'500'000;
    for (std::size_t k = 0; k < costs.size(); ++k) beaten |= k != i && is_as_good(costs[k], costs[i]);
    if (!beaten) front.push_back(i);
  }
  std::ranges::sort(front, {}, [&](std::size_t i) { return costs[i].seconds; });
  return front;
}

TEST(Search, FindsTheFrontThatComparingAllWithAllFinds) {
  const Outcome outcome = searched(3000, 1, 0);
  EXPECT_EQ(outcome.result.pareto, front_by_hand(3000));
  EXPECT_LT(outcome.simulated, 1500) << "bounds leave most out";
  EXPECT_GT(outcome.simulated, 0);
}

TEST(Search, ReportsItsProgressUpToItsLastSimulation) {
  std::atomic<int> simulated = 0;
  std::vector<std::pair<std::int64_t, double>> seen;
  const SearchOptions options{.memory_bytes = 1'500'000, .progress = [&](std::int64_t done, double fastest_s) {
                                seen.emplace_back(done, fastest_s);
                              }};
  const SearchResult result = search(points(3000), options, [&] { return std::make_unique<MadeUp>(simulated); });
  ASSERT_FALSE(seen.empty());
  EXPECT_TRUE(std::ranges::is_sorted(seen, {}, &std::pair<std::int64_t, double>::first));
  EXPECT_EQ(seen.back().first, simulated);
  EXPECT_EQ(seen.back().second, result.best()->found.step_s);
}

TEST(Search, IsTheSameOnAnyNumberOfThreads) {
  const Outcome one = searched(2000, 1, 0.01);
  for (const int threads : {2, 3, 7}) {
    const Outcome several = searched(2000, threads, 0.01);
    EXPECT_EQ(several.simulated, one.simulated);
    EXPECT_EQ(several.result.pareto, one.result.pareto);
    for (std::size_t i = 0; i < one.result.candidates.size(); ++i) {
      EXPECT_EQ(several.result.candidates[i].fate, one.result.candidates[i].fate);
      EXPECT_EQ(several.result.candidates[i].by, one.result.candidates[i].by);
    }
  }
}

TEST(Search, ItsFastestIsWithinTheTolerance) {
  const double fastest = searched(3000, 2, 0).result.best()->found.step_s;
  EXPECT_LE(searched(3000, 2, 0.05).result.best()->found.step_s, fastest / 0.95);
  EXPECT_LE(searched(3000, 2, 0.05).simulated, searched(3000, 2, 0).simulated);
}

TEST(Search, EveryPointHasAFateThatIsTrue) {
  const Outcome outcome = searched(2000, 2, 0);
  std::size_t counted = 0;
  for (const Fate fate : {Fate::simulated, Fate::too_large, Fate::cannot_fit, Fate::cannot_be_best})
    counted += outcome.result.count(fate);
  EXPECT_EQ(counted, 2000U);
  for (const Candidate& c : outcome.result.candidates) {
    const Evaluation truth = MadeUp::cost(c.point, 1);
    const bool refused = c.fate == Fate::too_large || c.fate == Fate::cannot_fit;
    if (c.fate != Fate::cannot_be_best) {
      EXPECT_EQ(truth.memory_bytes > 1'500'000, refused);
    }
    if (c.fate != Fate::cannot_be_best) continue;
    const Candidate& other = outcome.result.candidates[c.by];
    EXPECT_TRUE(is_as_good({other.found.step_s, other.found.memory_bytes, other.point.gpus},
                           {truth.step_s, truth.memory_bytes, c.point.gpus}));
  }
}

TEST(Search, SimulatesNoMoreThanItMay) {
  for (const int most : {1, 40, 64, 300}) {
    std::atomic<int> simulated = 0;
    const SearchResult result =
        search(points(3000), {.memory_bytes = 1'500'000, .threads = 2, .tolerance = 0, .simulations = most},
               [&] { return std::make_unique<MadeUp>(simulated); });
    EXPECT_EQ(simulated, most);
    EXPECT_GT(result.count(Fate::not_simulated), 0U);
    for (const Candidate& c : result.candidates)
      if (c.fate == Fate::not_simulated) {
        EXPECT_GE(c.bound.seconds, result.least_not_simulated_s);
      }
  }
}

/// What a front that is not complete promises is true.
TEST(Search, SaysWithinWhatItsFrontIsComplete) {
  std::atomic<int> simulated = 0;
  const int enough = searched(3000, 2, 0.05).simulated;
  const SearchResult result = search(points(3000), {.memory_bytes = 1'500'000, .threads = 2, .simulations = enough},
                                     [&] { return std::make_unique<MadeUp>(simulated); });
  EXPECT_EQ(result.complete_within, 0.05);
  for (const std::size_t index : front_by_hand(3000)) {
    const Evaluation best = MadeUp::cost(result.candidates[index].point, 1);
    const bool near = std::ranges::any_of(result.pareto, [&](std::size_t found) {
      const Candidate& c = result.candidates[found];
      return is_as_good({c.found.step_s, c.found.memory_bytes, c.point.gpus},
                        {best.step_s, best.memory_bytes, result.candidates[index].point.gpus},
                        1 - result.complete_within);
    });
    EXPECT_TRUE(near) << index;
  }
}

TEST(Search, ThrowsWhatAnEvaluatorThrows) {
  std::atomic<int> simulated = 0;
  std::vector<Point> all = points(10);
  all[5].local_batch = -1;
  EXPECT_THROW(search(all, {.memory_bytes = 1 << 30, .threads = 3, .tolerance = 0},
                      [&] { return std::make_unique<MadeUp>(simulated); }),
               std::runtime_error);
}

TEST(Search, OfNothingHasNoBest) {
  std::atomic<int> simulated = 0;
  const SearchResult none = search(points(20), {.memory_bytes = 1, .threads = 2, .tolerance = 0},
                                   [&] { return std::make_unique<MadeUp>(simulated); });
  EXPECT_EQ(none.best(), nullptr);
  ASSERT_NE(none.nearest_miss(), nullptr);
  for (const Candidate& c : none.candidates) EXPECT_GE(c.bound.memory_bytes, none.nearest_miss()->bound.memory_bytes);
}

}  // namespace
}  // namespace foreshard::sim::planner
