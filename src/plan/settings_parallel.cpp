#include "plan/settings_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace foreshard::plan {
namespace {

enum class Degrees : std::uint8_t { all_sharded, all_replicated, hybrid };

/// What a strategy's name stands for.
struct Strategy {
  std::string_view name;
  Degrees degrees;
  Keep keep;
};
constexpr Strategy strategies[] = {{"full_shard", Degrees::all_sharded, Keep::visit},
                                   {"shard_grad_op", Degrees::all_sharded, Keep::micro_batch},
                                   {"no_shard", Degrees::all_replicated, Keep::visit},
                                   {"hybrid_shard", Degrees::hybrid, Keep::visit},
                                   {"hybrid_shard_grad_op", Degrees::hybrid, Keep::micro_batch},
                                   {"zero1", Degrees::all_sharded, Keep::step}};

std::vector<std::string_view> strategy_names() {
  std::vector<std::string_view> names;
  for (const Strategy& strategy : strategies) names.push_back(strategy.name);
  return names;
}

const Strategy& read_strategy(const Config& config, Problems& problems) {
  const auto name = config.get<std::string>("parallel.strategy");
  const auto found = std::ranges::find(strategies, name, &Strategy::name);
  if (found != std::end(strategies)) return *found;
  const auto names = strategy_names();
  problems.push_back(fmt::format("parallel.strategy = {}: unknown; expected one of {}.{}", name, fmt::join(names, ", "),
                                 did_you_mean(name, std::span(names))));
  return strategies[0];
}

// ---- the mesh

/// A degree as it was asked for: none is whatever follows from the rest.
std::optional<int> asked_degree(const Config& config, std::string_view key, Problems& problems) {
  const int degree = config.get<int>(key);
  if (degree == 0)
    problems.push_back(fmt::format("{} = 0: expected at least 1, or -1 for what the strategy makes of it", key));
  return degree < 1 ? std::nullopt : std::optional(degree);
}

/// The degrees of a strategy that shards or replicates over everything.
Mesh natural_mesh(Degrees degrees, int world_size) {
  return degrees == Degrees::all_replicated ? Mesh{.replicas = world_size} : Mesh{.inner = world_size};
}

/// The divisor of `world_size` nearest to `degree`.
int nearest_divisor(int world_size, int degree) {
  int best = 1;
  for (int d = 1; d <= world_size; ++d)
    if (world_size % d == 0 && std::abs(d - degree) < std::abs(best - degree)) best = d;
  return best;
}

std::string degrees_text(int shard, int replicate) {
  return fmt::format("parallel.shard_degree = {} and parallel.replicate_degree = {}", shard, replicate);
}

/// Why degrees that were asked for, of which `product` ranks follow, do not fit the world.
std::string misfit_text(std::optional<int> shard, std::optional<int> replicate, std::int64_t product, int world_size) {
  if (shard && replicate)
    return fmt::format("{} multiply to {}, but there are {} ranks", degrees_text(*shard, *replicate), product,
                       world_size);
  return fmt::format("parallel.{} = {} does not divide the {} ranks", shard ? "shard_degree" : "replicate_degree",
                     shard ? *shard : *replicate, world_size);
}

std::string nearest_text(const Mesh& mesh) {
  return "nearest mesh that fits: " + degrees_text(mesh.shard_degree(), mesh.replicas);
}

Mesh read_hybrid_mesh(std::string_view strategy, std::optional<int> shard, std::optional<int> replicate, int world_size,
                      Problems& problems) {
  if (!shard && !replicate) {
    problems.push_back(
        fmt::format("parallel.strategy = {} needs parallel.shard_degree: the ranks that share one copy "
                    "of the model, usually those of a node; any divisor of {} ranks",
                    strategy, world_size));
    return {.inner = world_size};
  }
  const int degree = shard ? *shard : nearest_divisor(world_size, world_size / *replicate);
  const int inner = nearest_divisor(world_size, degree);
  const Mesh mesh{.replicas = world_size / inner, .inner = inner};
  const std::int64_t product = std::int64_t{degree} * replicate.value_or(world_size / degree);
  if (product != world_size || replicate.value_or(mesh.replicas) != mesh.replicas)
    problems.push_back(fmt::format("{}; {}", misfit_text(shard, replicate, product, world_size), nearest_text(mesh)));
  return mesh;
}

Mesh read_uniform_mesh(const Strategy& strategy, int shard, int replicate, int world_size, Problems& problems) {
  const Mesh mesh = natural_mesh(strategy.degrees, world_size);
  const std::int64_t product = std::int64_t{shard} * replicate;
  if (product == world_size && shard == mesh.shard_degree()) return mesh;
  std::string why = fmt::format("multiply to {}, but there are {} ranks", product, world_size);
  if (product == world_size) why = fmt::format("do not agree with parallel.strategy = {}", strategy.name);
  if (product == world_size && shard > 1 && replicate > 1)
    why += "; both above 1 is parallel.strategy = hybrid_shard or hybrid_shard_grad_op";
  problems.push_back(fmt::format("{} {}; {}", degrees_text(shard, replicate), why, nearest_text(mesh)));
  return mesh;
}

Mesh read_mesh(const Config& config, const Strategy& strategy, int world_size, Problems& problems) {
  const auto shard = asked_degree(config, "parallel.shard_degree", problems);
  const auto replicate = asked_degree(config, "parallel.replicate_degree", problems);
  if (strategy.degrees == Degrees::hybrid)
    return read_hybrid_mesh(strategy.name, shard, replicate, world_size, problems);
  const Mesh natural = natural_mesh(strategy.degrees, world_size);
  return read_uniform_mesh(strategy, shard.value_or(natural.shard_degree()), replicate.value_or(natural.replicas),
                           world_size, problems);
}

// ---- the schedule

std::optional<int> parse_count(std::string_view text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1) return std::nullopt;
  return count;
}

/// parallel.reshard_after_forward, where it is not `default`: what is kept until backward.
void read_reshard(const Config& config, const Strategy& strategy, Parallel& parallel, Problems& problems) {
  const auto value = config.get<std::string>("parallel.reshard_after_forward");
  if (value == "default") return;
  const int shard_degree = parallel.mesh.shard_degree();
  const auto degree = parse_count(value);
  if (strategy.keep == Keep::step || strategy.degrees == Degrees::all_replicated)
    problems.push_back(
        fmt::format("parallel.reshard_after_forward = {}: parallel.strategy = {} keeps parameters whole; "
                    "leave it at default",
                    value, strategy.name));
  else if (value == "always" || value == "never" || degree == 1)
    parallel.schedule.keep = value == "always" ? Keep::visit : Keep::micro_batch;
  else if (!degree || shard_degree % *degree != 0)
    problems.push_back(
        fmt::format("parallel.reshard_after_forward = {}: expected default, always, never, or a number "
                    "of ranks that divides the shard degree {}",
                    value, shard_degree));
  else
    parallel.mesh.outer = shard_degree / *degree, parallel.mesh.inner = *degree, parallel.schedule.keep = Keep::visit;
}

void read_reshard_after_backward(const Config& config, ScheduleOptions& schedule, Problems& problems) {
  if (config.get<bool>("parallel.reshard_after_backward")) return;
  if (schedule.keep == Keep::visit)
    problems.push_back(
        "parallel.reshard_after_backward = false: parameters are freed after forward already; use "
        "parallel.strategy = shard_grad_op or hybrid_shard_grad_op, or leave it true");
  schedule.keep = Keep::step;
}

BackwardPrefetch read_prefetch(const Config& config) {
  const auto name = config.get<std::string>("parallel.prefetch");
  if (name == "none") return BackwardPrefetch::none;
  return name == "post" ? BackwardPrefetch::post : BackwardPrefetch::pre;
}

Accumulation read_accumulation(const Config& config, const Strategy& strategy, Problems& problems) {
  const auto name = config.get<std::string>("parallel.accumulation");
  if (name == "reduce_scatter" && strategy.degrees != Degrees::hybrid)
    problems.push_back(
        "parallel.accumulation = reduce_scatter: only the hybrid strategies have replicas to sum "
        "over later; expected reduce or no_sync");
  if (name == "no_sync" || strategy.keep == Keep::step) return Accumulation::no_sync;
  return name == "reduce_scatter" ? Accumulation::reduce_scatter : Accumulation::reduce;
}

void read_gather_limit(const Config& config, ScheduleOptions& schedule, Problems& problems) {
  const auto value = config.get<std::string>("parallel.limit");
  const auto count = parse_count(value);
  const auto bytes = parse_size(value);
  schedule.gather_limit = std::min(count.value_or(unlimited), unlimited);
  if (count || value == "unlimited") return;
  const bool has_unit = !value.empty() && std::isalpha(static_cast<unsigned char>(value.back()));
  if (has_unit && bytes && *bytes > 0)
    schedule.gather_limit_bytes = *bytes;
  else
    problems.push_back(
        fmt::format("parallel.limit = {}: expected a number of units of at least 1, a size such as "
                    "64MiB, or unlimited",
                    value));
}

void read_reduce_limit(const Config& config, ScheduleOptions& schedule, Problems& problems) {
  const auto value = config.get<std::string>("parallel.reduce_limit");
  const auto count = parse_count(value);
  schedule.reduce_limit = std::min(count.value_or(unlimited), unlimited);
  if (!count && value != "unlimited")
    problems.push_back(
        fmt::format("parallel.reduce_limit = {}: expected a number of units of at least 1, or unlimited", value));
}

}  // namespace

void add_parallel_keys(Config& config) {
  config.add("parallel.strategy", "full_shard", fmt::format("what is sharded: {}", fmt::join(strategy_names(), ", ")));
  config.add("parallel.shard_degree", -1, "ranks that a unit is sharded over; -1 = what the strategy makes of it",
             {.unit = "ranks", .min = -1});
  config.add("parallel.replicate_degree", -1, "copies of the sharded model; -1 = what the strategy makes of it",
             {.min = -1});
  config.add("parallel.reshard_after_forward", "default",
             "what is kept of a gathered unit until backward: default (the strategy's), always (only the shard), "
             "never (all), or N (1/N, regathered over N neighbours)");
  config.add("parallel.reshard_after_backward", true,
             "false: what was kept until backward stays for the step's next micro-batch");
  config.add("parallel.accumulation", "reduce",
             "gradients of all but the last micro-batch: reduced each time, added up unsharded, or (hybrid) summed "
             "over replicas only at last",
             {.choices = {"reduce", "no_sync", "reduce_scatter"}});
  config.add("parallel.prefetch", "pre", "backward: gather the next unit before, after or only when it is needed",
             {.choices = {"none", "pre", "post"}});
  config.add("parallel.prefetch_depth", 1, "backward: units gathered ahead, of prefetch = pre",
             {.unit = "units", .min = 0});
  config.add("parallel.forward_prefetch", 1, "forward: units gathered ahead", {.unit = "units", .min = 0});
  config.add("parallel.limit", "2", "units gathered at once, the one in use included: N, a size or unlimited",
             {.unit = "units"});
  config.add("parallel.reduce_limit", "2", "unsharded gradients waiting for or in reduction: N or unlimited",
             {.unit = "units"});
}

Parallel read_parallel(const Config& config, int world_size, Problems& problems) {
  const Strategy& strategy = read_strategy(config, problems);
  Parallel parallel{.mesh = read_mesh(config, strategy, world_size, problems)};
  ScheduleOptions& schedule = parallel.schedule;
  schedule.keep = strategy.keep;
  read_reshard(config, strategy, parallel, problems);
  read_reshard_after_backward(config, schedule, problems);
  schedule.accumulation = read_accumulation(config, strategy, problems);
  schedule.prefetch = read_prefetch(config);
  schedule.prefetch_depth = config.get<int>("parallel.prefetch_depth");
  schedule.forward_prefetch = config.get<int>("parallel.forward_prefetch");
  read_gather_limit(config, schedule, problems);
  read_reduce_limit(config, schedule, problems);
  return parallel;
}

}  // namespace foreshard::plan
