#include "plan/settings.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace foreshard::plan {

namespace {

using Problems = std::vector<std::string>;
constexpr std::string_view strategies[] = {"full_shard", "no_shard"};
constexpr std::string_view later_strategies[] = {"shard_grad_op", "hybrid_shard", "hybrid_shard_grad_op", "zero1"};

template <class Range>
bool contains(const Range& names, std::string_view name) {
  for (const std::string_view known : names) {
    if (known == name) return true;
  }
  return false;
}

void override_size(const Config& config, std::string_view key, std::int64_t& size) {
  if (const auto value = config.get<std::int64_t>(key); value != 0) size = value;
}

model::GptConfig read_model(const Config& config, Problems& problems) {
  model::GptConfig model;
  try {
    model = model::gpt_preset(config.get<std::string>("model.preset"));
  } catch (const InputError& error) {
    problems.push_back(error.what());
  }
  override_size(config, "model.layers", model.layers);
  override_size(config, "model.width", model.width);
  override_size(config, "model.heads", model.heads);
  override_size(config, "model.vocab_size", model.vocab_size);
  override_size(config, "model.max_seq_len", model.max_seq_len);
  override_size(config, "model.ffn_width", model.ffn_width);
  const auto tied = config.get<std::string>("model.tied_head");
  if (tied != "preset") model.tied_head = tied == "true";
  model.dropout = config.get<double>("model.dropout");
  return model;
}

Strategy read_strategy(const Config& config, Problems& problems) {
  const auto name = config.get<std::string>("parallel.strategy");
  if (name == "no_shard") return Strategy::no_shard;
  if (contains(later_strategies, name)) {
    problems.push_back(fmt::format("parallel.strategy = {}: not yet supported; use full_shard or no_shard", name));
  } else if (!contains(strategies, name)) {
    problems.push_back(fmt::format("parallel.strategy = {}: unknown; expected full_shard or no_shard.{}", name,
                                   did_you_mean(name, std::span<const std::string_view>(strategies))));
  }
  return Strategy::full_shard;
}

BackwardPrefetch read_prefetch(const Config& config) {
  const auto name = config.get<std::string>("parallel.prefetch");
  if (name == "none") return BackwardPrefetch::none;
  return name == "post" ? BackwardPrefetch::post : BackwardPrefetch::pre;
}

std::optional<int> parse_count(std::string_view text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1) return std::nullopt;
  return count;
}

int read_limit(const Config& config, std::string_view key, Problems& problems) {
  const auto value = config.get<std::string>(key);
  if (value == "unlimited") return unlimited;
  if (const auto count = parse_count(value)) return std::min(*count, unlimited);
  const bool size = parse_size(value).value_or(0) > 0 && key == "parallel.limit";
  problems.push_back(
      size ? fmt::format("{} = {}: a limit in bytes is not yet supported; give a number of units", key, value)
           : fmt::format("{} = {}: expected a number of units of at least 1, or unlimited", key, value));
  return 2;
}

ScheduleOptions read_schedule(const Config& config, Problems& problems) {
  ScheduleOptions schedule;
  schedule.strategy = read_strategy(config, problems);
  schedule.prefetch = read_prefetch(config);
  schedule.prefetch_depth = config.get<int>("parallel.prefetch_depth");
  schedule.forward_prefetch = config.get<int>("parallel.forward_prefetch");
  schedule.gather_limit = read_limit(config, "parallel.limit", problems);
  schedule.reduce_limit = read_limit(config, "parallel.reduce_limit", problems);
  return schedule;
}

/// The mesh of a strategy on `world_size` ranks; each strategy of today has exactly one.
Mesh natural_mesh(Strategy strategy, int world_size) {
  return strategy == Strategy::full_shard ? Mesh{.inner = world_size} : Mesh{.replicas = world_size};
}

std::string degrees_text(int shard, int replicate) {
  return fmt::format("parallel.shard_degree = {} and parallel.replicate_degree = {}", shard, replicate);
}

/// What is wrong with degrees that were asked for; empty if they are those of `mesh`.
std::string mesh_problem(std::string_view strategy, int shard, int replicate, const Mesh& mesh) {
  const int world = mesh.world_size();
  const std::int64_t product = std::int64_t{shard} * replicate;
  if (product == world && shard == mesh.shard_degree()) return "";
  std::string why = fmt::format("multiply to {}, but there are {} ranks", product, world);
  if (product == world) why = fmt::format("do not agree with parallel.strategy = {}", strategy);
  if (product == world && shard > 1 && replicate > 1) why += "; both above 1 (hybrid sharding) is not yet supported";
  return fmt::format("{} {}; nearest mesh that fits: {}", degrees_text(shard, replicate), why,
                     degrees_text(mesh.shard_degree(), mesh.replicas));
}

/// A degree as it was asked for: −1 is what the strategy makes of it.
int asked_degree(const Config& config, std::string_view key, int natural, Problems& problems) {
  const int degree = config.get<int>(key);
  if (degree == 0)
    problems.push_back(fmt::format("{} = 0: expected at least 1, or -1 for what the strategy makes of it", key));
  return degree < 1 ? natural : degree;
}

Mesh read_mesh(const Config& config, Strategy strategy, int world_size, Problems& problems) {
  const Mesh mesh = natural_mesh(strategy, world_size);
  const int shard = asked_degree(config, "parallel.shard_degree", mesh.shard_degree(), problems);
  const int replicate = asked_degree(config, "parallel.replicate_degree", mesh.replicas, problems);
  const auto name = config.get<std::string>("parallel.strategy");
  if (const std::string problem = mesh_problem(name, shard, replicate, mesh); !problem.empty())
    problems.push_back(problem);
  return mesh;
}

int read_micro_batches(const Config& config, std::int64_t local, int ranks, Problems& problems) {
  const auto global = config.get<std::int64_t>("train.global_batch_size");
  const std::int64_t once = local * ranks;
  if (global == 0 || once < 1) return 1;
  if (global % once == 0 && global / once < unlimited) return static_cast<int>(global / once);
  const std::int64_t below = global / once * once;
  problems.push_back(fmt::format(
      "train.global_batch_size = {} is not a multiple of train.local_batch_size × ranks = {} × {} = {}; nearest: {}{}",
      global, local, ranks, once, below > 0 ? fmt::format("{} or ", below) : "", below + once));
  return 1;
}

}  // namespace

void add_plan_keys(Config& config) {
  const KeyDetails size{.min = 0};
  config.add("model.preset", "gpt2", fmt::format("model to begin with: {}", fmt::join(model::gpt_presets(), ", ")));
  config.add("model.layers", 0, "transformer blocks; 0 = the preset's", size);
  config.add("model.width", 0, "width of the residual stream; 0 = the preset's", size);
  config.add("model.heads", 0, "attention heads; 0 = the preset's", size);
  config.add("model.vocab_size", 0, "rows of the token table; 0 = the preset's", size);
  config.add("model.max_seq_len", 0, "rows of the position table; 0 = the preset's", size);
  config.add("model.ffn_width", 0, "width of the feed-forward layer; 0 = 4 × width", size);
  config.add("model.tied_head", "preset", "the head shares the token table", {.choices = {"preset", "true", "false"}});
  config.add("model.dropout", 0.0, "drop probability", {.min = 0, .max = 1});

  config.add("train.seq_len", 0, "length of a sequence; 0 = model.max_seq_len", {.unit = "tokens", .min = 0});
  config.add("train.local_batch_size", 1, "sequences of one micro-batch on one rank", {.unit = "sequences", .min = 1});
  config.add("train.global_batch_size", 0, "sequences of one step on all ranks; 0 = one micro-batch each",
             {.unit = "sequences", .min = 0});

  config.add("parallel.strategy", "full_shard", "what is sharded: full_shard or no_shard");
  config.add("parallel.shard_degree", -1, "ranks that a unit is sharded over; -1 = what the strategy makes of it",
             {.unit = "ranks", .min = -1});
  config.add("parallel.replicate_degree", -1, "copies of the sharded model; -1 = what the strategy makes of it",
             {.min = -1});
  config.add("parallel.prefetch", "pre", "backward: gather the next unit before, after or only when it is needed",
             {.choices = {"none", "pre", "post"}});
  config.add("parallel.prefetch_depth", 1, "backward: units gathered ahead, of prefetch = pre",
             {.unit = "units", .min = 0});
  config.add("parallel.forward_prefetch", 1, "forward: units gathered ahead", {.unit = "units", .min = 0});
  config.add("parallel.limit", "2", "units gathered at once, the one in use included: N or unlimited",
             {.unit = "units"});
  config.add("parallel.reduce_limit", "2", "unsharded gradients waiting for or in reduction: N or unlimited",
             {.unit = "units"});
}

Settings read_settings(const Config& config, int world_size) {
  Problems problems;
  if (world_size < 1) throw InputError(ExitCode::usage, fmt::format("{} ranks: expected at least 1", world_size));
  Settings settings;
  settings.model = read_model(config, problems);
  settings.batch = {config.get<std::int64_t>("train.local_batch_size"), settings.model.max_seq_len};
  override_size(config, "train.seq_len", settings.batch.seq);
  for (std::string& problem : model::problems(settings.model, settings.batch)) problems.push_back(std::move(problem));
  settings.schedule = read_schedule(config, problems);
  settings.mesh = read_mesh(config, settings.schedule.strategy, world_size, problems);
  settings.schedule.micro_batches = read_micro_batches(config, settings.batch.batch, world_size, problems);
  if (problems.empty()) return settings;
  throw InputError(ExitCode::usage,
                   numbered(fmt::format("{} problems on {} rank(s):", problems.size(), world_size), problems));
}

}  // namespace foreshard::plan
