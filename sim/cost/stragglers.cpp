#include "sim/cost/stragglers.hpp"

#include <cmath>
#include <numbers>

namespace foreshard::sim::cost {
namespace {

constexpr double reach = 10, step = 1.0 / 1024;

double normal_below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

}  // namespace

double expected_largest_normal(int count) {
  double positive = 0, negative = 0;
  for (double x = 0; x < reach; x += step) {
    const double weight = x == 0 ? step / 2 : step;
    positive += weight * (1 - std::pow(normal_below(x), count));
    negative += weight * std::pow(normal_below(-x), count);
  }
  return positive - negative;
}

double slowest_rank_factor(double sigma, int ranks) { return 1 + sigma * expected_largest_normal(ranks); }

}  // namespace foreshard::sim::cost
