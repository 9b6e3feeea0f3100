#include "sim/planner/run_cost.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace foreshard::sim::planner {
namespace {

constexpr double gpus_of_a_node = 8, least_failures = 2.34e-3, most_failures = 6.50e-3;  // of a node and day

double factor_of(char suffix) {
  switch (suffix) {
    case 'K':
      return 1e3;
    case 'M':
      return 1e6;
    case 'B':
      return 1e9;
    case 'T':
      return 1e12;
    default:
      return 0;
  }
}

}  // namespace

std::optional<double> parse_tokens(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc() || !std::isfinite(number) || number <= 0 || number > 1e18 || rest.size() > 1)
    return std::nullopt;
  if (rest.empty()) return number;
  const double factor = factor_of(rest.front());
  return factor > 0 && number * factor <= 1e18 ? std::optional(number * factor) : std::nullopt;
}

void add_run_options(Config& config) {
  config.add("tokens", "", "say how long a run of so many tokens takes, such as 300B or 15T", {.unit = "tokens"});
  config.add("gpu-hour-price", 0.0, "what a GPU costs for an hour, for --tokens", {.min = 0, .max = 1e6});
}

RunLength read_run_length(const Config& config) {
  const auto text = config.get<std::string>("tokens");
  const double price = config.get<double>("gpu-hour-price");
  if (text.empty() && price > 0)
    throw InputError(ExitCode::usage, "--gpu-hour-price: the price of a run needs its length\n  set --tokens too");
  if (text.empty()) return {};
  const auto tokens = parse_tokens(trimmed(text));
  if (!tokens)
    throw InputError(
        ExitCode::usage,
        fmt::format("--tokens: `{}` is no number of tokens\n  expected: such as 300B, 1.4T or 2e12, at most 1e18",
                    text));
  return {*tokens, price};
}

RunCost run_cost(const RunLength& run, double step_s, double step_tokens, int gpus) {
  RunCost cost{.steps = std::ceil(run.tokens / step_tokens)};
  cost.seconds = cost.steps * step_s;
  cost.gpu_hours = cost.seconds / 3600 * gpus;
  cost.price = cost.gpu_hours * run.gpu_hour_price;
  const double node_days = cost.days() * gpus / gpus_of_a_node;
  cost.failures_least = least_failures * node_days;
  cost.failures_most = most_failures * node_days;
  return cost;
}

std::string text_of(const RunCost& cost) {
  std::string text = fmt::format("run of {} steps: {:.2f} days, {} GPU-hours", count_text(std::llround(cost.steps)),
                                 cost.days(), count_text(std::llround(cost.gpu_hours)));
  if (cost.price > 0)
    text += fmt::format(", which cost {} at {:.4g} each", count_text(std::llround(cost.price)),
                        cost.price / cost.gpu_hours);
  if (cost.failures_most < 0.5) return text + "; failures are unlikely\n";
  return text + fmt::format("; {:.0f} to {:.0f} failures of nodes, one in {:.3g} to {:.3g} days\n", cost.failures_least,
                            cost.failures_most, cost.days() / cost.failures_most, cost.days() / cost.failures_least);
}

nlohmann::ordered_json json_of(const RunCost& cost) {
  nlohmann::ordered_json json{{"steps", cost.steps},
                              {"days", cost.days()},
                              {"gpu_hours", cost.gpu_hours},
                              {"failures_least", cost.failures_least},
                              {"failures_most", cost.failures_most}};
  if (cost.price > 0) json["price"] = cost.price;
  return json;
}

}  // namespace foreshard::sim::planner
