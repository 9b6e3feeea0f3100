#include "plan/settings.hpp"

#include <fmt/format.h>

#include <tuple>

#include "base/error.hpp"
#include "base/text.hpp"
#include "plan/settings_model.hpp"
#include "plan/settings_offload.hpp"
#include "plan/settings_optimizer.hpp"
#include "plan/settings_parallel.hpp"
#include "plan/settings_precision.hpp"
#include "plan/settings_recompute.hpp"
#include "plan/settings_units.hpp"

namespace foreshard::plan {

namespace {

/// Sequences and tokens of a step are counted in 64 bits, with room to add them up over steps.
constexpr std::int64_t most_tokens = std::int64_t{1} << 50;

void check_step(const Settings& settings, int ranks, Problems& problems) {
  const double rows = static_cast<double>(settings.batch.batch) * ranks * settings.schedule.micro_batches;
  const double tokens = rows * static_cast<double>(settings.batch.seq);
  if (tokens > static_cast<double>(most_tokens))
    problems.push_back(fmt::format("a step of {:.3g} sequences of {} tokens has {:.3g} tokens, expected at most {:.3g}",
                                   rows, settings.batch.seq, tokens, static_cast<double>(most_tokens)));
}

int read_micro_batches(const Config& config, std::int64_t local, int ranks, Problems& problems) {
  const auto global = config.get<std::int64_t>("train.global_batch_size");
  if (global == 0 || local < 1 || local > most_tokens / ranks) return 1;
  const std::int64_t once = local * ranks;
  if (global / once >= unlimited) {
    problems.push_back(
        fmt::format("train.global_batch_size = {} makes {} micro-batches of train.local_batch_size × ranks = {} × {} = "
                    "{}, expected fewer than {}",
                    global, global / once, local, ranks, once, unlimited));
    return 1;
  }
  if (global % once == 0) return static_cast<int>(global / once);
  const std::int64_t below = global / once * once;
  problems.push_back(fmt::format(
      "train.global_batch_size = {} is not a multiple of train.local_batch_size × ranks = {} × {} = {}; nearest: {}{}",
      global, local, ranks, once, below > 0 ? fmt::format("{} or ", below) : "", below + once));
  return 1;
}

}  // namespace

void add_plan_keys(Config& config) {
  add_model_keys(config);
  config.add("train.seq_len", 0, "length of a sequence; 0 = model.max_seq_len", {.unit = "tokens", .min = 0});
  config.add("train.local_batch_size", 1, "sequences of one micro-batch on one rank", {.unit = "sequences", .min = 1});
  config.add("train.global_batch_size", 0, "sequences of one step on all ranks; 0 = one micro-batch each",
             {.unit = "sequences", .min = 0});
  config.add("engine.workspace_mib", 64,
             "on CUDA devices, part of the arena for matrix products and partial sums; cuBLASLt's fastest products on "
             "H100 and later take 32",
             {.unit = "MiB", .min = 1, .max = 1 << 12});

  add_parallel_keys(config);
  add_recompute_keys(config);
  add_precision_keys(config);
  add_offload_keys(config);
  add_optimizer_keys(config);
  add_unit_keys(config);
}

Settings read_settings(const Config& config, int world_size) {
  Problems problems;
  if (world_size < 1) throw InputError(ExitCode::usage, fmt::format("{} ranks: expected at least 1", world_size));
  Settings settings;
  std::tie(settings.model, settings.model_source) = read_model(config, problems);
  settings.batch = {config.get<std::int64_t>("train.local_batch_size"), model::dimensions(settings.model).max_seq_len};
  if (const auto seq = config.get<std::int64_t>("train.seq_len"); seq > 0) settings.batch.seq = seq;
  check_model(settings.model, settings.batch, settings.model_source, problems);
  Parallel parallel = read_parallel(config, world_size, problems);
  settings.mesh = parallel.mesh;
  settings.schedule = std::move(parallel.schedule);
  settings.cuda_workspace_bytes = config.get<std::int64_t>("engine.workspace_mib") << 20;
  settings.schedule.precision = read_precision(config, problems);
  settings.schedule.master = read_master(config, problems);
  settings.schedule.offload = read_offload(config);
  settings.schedule.recompute = read_recompute(config, problems);
  settings.schedule.update = read_optimizer(config, problems);
  settings.schedule.norm_power = read_norm_power(config);
  settings.schedule.micro_batches = read_micro_batches(config, settings.batch.batch, world_size, problems);
  check_step(settings, world_size, problems);
  Units units = read_units(config, problems);
  settings.schedule.wrap = std::move(units.wrap);
  settings.partial = std::move(units.partial);
  if (problems.empty())
    problems = plan::problems(model::build(settings.model, {1, 1}), settings.schedule.wrap, settings.partial);
  if (problems.empty()) return settings;
  throw InputError(ExitCode::usage,
                   numbered(fmt::format("{} problems on {} rank(s):", problems.size(), world_size), problems));
}

}  // namespace foreshard::plan
