#include "sim/validation/score.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace foreshard::sim::validation {
namespace {

bool is_further_off(const Pair& a, const Pair& b) { return std::abs(a.error()) > std::abs(b.error()); }

double log_ratio(const Pair& pair) { return std::log(pair.predicted / pair.measured); }

double median_scale(std::vector<double> logs) {
  const auto middle = logs.begin() + static_cast<std::ptrdiff_t>(logs.size() / 2);
  std::ranges::nth_element(logs, middle);
  return std::exp(*middle);
}

std::string source_and_gpu(const Pair& pair) { return pair.source + "\n" + pair.gpu; }

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

std::vector<Pair> with_one_scale(std::vector<Pair> pairs) {
  std::map<std::string, std::vector<double>> logs;
  for (const Pair& pair : pairs) logs[source_and_gpu(pair)].push_back(log_ratio(pair));
  for (Pair& pair : pairs) pair.predicted /= median_scale(logs[source_and_gpu(pair)]);
  return pairs;
}

std::vector<Pair> scaling_ratios(const std::vector<Pair>& pairs) {
  std::map<std::string, std::vector<const Pair*>> of_eight;
  for (const Pair& pair : pairs)
    if (pair.gpus == 8) of_eight[pair.series].push_back(&pair);
  std::vector<Pair> ratios;
  for (const Pair& pair : pairs) {
    const auto found = of_eight.find(pair.series);
    if (pair.gpus <= 8 || found == of_eight.end()) continue;
    const auto alike = std::ranges::find(found->second, pair.micro_batch, &Pair::micro_batch);
    const Pair& eight = alike != found->second.end() ? **alike : *found->second.front();
    ratios.push_back(pair);
    ratios.back().predicted = eight.predicted / pair.predicted;
    ratios.back().measured = eight.measured / pair.measured;
  }
  return ratios;
}

std::vector<Pair> above(const std::vector<Pair>& pairs, int gpus) {
  std::vector<Pair> large;
  std::ranges::copy_if(pairs, std::back_inserter(large), [&](const Pair& pair) { return pair.gpus > gpus; });
  return large;
}

std::vector<Pair> with_adapters(const std::vector<Pair>& pairs, bool adapters) {
  std::vector<Pair> some;
  std::ranges::copy_if(pairs, std::back_inserter(some), [&](const Pair& pair) { return pair.adapters == adapters; });
  return some;
}

double coverage(const std::vector<Pair>& pairs) {
  const auto within =
      std::ranges::count_if(pairs, [](const Pair& p) { return 100 * std::abs(p.error()) <= p.error_bar_pct; });
  return pairs.empty() ? 1 : static_cast<double>(within) / static_cast<double>(pairs.size());
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
