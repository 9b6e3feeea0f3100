#include "sim/cost/interpolate.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace foreshard::sim::cost {
namespace {

double squared_distance(const std::array<double, 3>& a, const std::array<double, 3>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(std::log(a[i] / b[i]), 2);
  return sum;
}

double shepard(std::span<const Known> known, const std::array<double, 3>& extents) {
  constexpr double exact = 1e-18;
  double weights = 0, sum = 0;
  for (const Known& point : known) {
    const double distance = squared_distance(point.extents, extents);
    if (distance < exact) return point.value;
    const double weight = 1 / (distance * distance);
    weights += weight;
    sum += weight * std::log(point.value);
  }
  return std::exp(sum / weights);
}

bool is_line(std::span<const Known> known) {
  return std::all_of(known.begin(), known.end(), [](const Known& k) { return k.extents[1] == 1 && k.extents[2] == 1; });
}

double between(const Known& low, const Known& high, double at) {
  const double part = std::log(at / low.extents[0]) / std::log(high.extents[0] / low.extents[0]);
  return low.value * std::pow(high.value / low.value, part);
}

double line(std::span<const Known> known, double at) {
  const Known *below = nullptr, *above = nullptr;
  for (const Known& point : known) {
    if (point.extents[0] <= at && (!below || point.extents[0] > below->extents[0])) below = &point;
    if (point.extents[0] >= at && (!above || point.extents[0] < above->extents[0])) above = &point;
  }
  if (!below || !above) return (below ? below : above)->value;
  return below->extents[0] == above->extents[0] ? below->value : between(*below, *above, at);
}

}  // namespace

double interpolate(std::span<const Known> known, const std::array<double, 3>& extents) {
  FORESHARD_EXPECT(!known.empty(), "a table has at least one point");
  return is_line(known) ? line(known, extents[0]) : shepard(known, extents);
}

}  // namespace foreshard::sim::cost
