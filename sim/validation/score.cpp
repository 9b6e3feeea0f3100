#include "sim/validation/score.hpp"

#include <algorithm>
#include <cmath>

namespace foreshard::sim::validation {
namespace {

bool is_further_off(const Pair& a, const Pair& b) { return std::abs(a.error()) > std::abs(b.error()); }

}  // namespace

Errors errors_of(const std::vector<Pair>& pairs) {
  Errors errors{.rows = pairs.size()};
  if (pairs.empty()) return errors;
  std::vector<double> magnitudes;
  for (const Pair& pair : pairs) {
    magnitudes.push_back(100 * std::abs(pair.error()));
    errors.mape_pct += magnitudes.back();
    errors.bias_pct += 100 * pair.error();
  }
  const auto rows = static_cast<double>(pairs.size());
  errors.mape_pct /= rows;
  errors.bias_pct /= rows;
  std::ranges::sort(magnitudes);
  errors.p90_pct = magnitudes[static_cast<std::size_t>(std::ceil(0.9 * rows)) - 1];
  return errors;
}

std::map<std::string, Errors> errors_by_source(const std::vector<Pair>& pairs) {
  std::map<std::string, std::vector<Pair>> by_source;
  for (const Pair& pair : pairs) by_source[pair.source].push_back(pair);
  std::map<std::string, Errors> errors;
  for (const auto& [source, of_source] : by_source) errors[source] = errors_of(of_source);
  return errors;
}

std::vector<Pair> worst(std::vector<Pair> pairs, std::size_t count) {
  std::ranges::stable_sort(pairs, is_further_off);
  pairs.resize(std::min(count, pairs.size()));
  return pairs;
}

void FitVerdicts::add(bool predicted, bool measured) {
  ++(measured ? fitting : not_fitting);
  if (predicted && !measured) ++false_fits;
  if (!predicted && measured) ++wasted;
}

}  // namespace foreshard::sim::validation
