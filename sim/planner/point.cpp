#include "sim/planner/point.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "base/error.hpp"
#include "base/text.hpp"

namespace foreshard::sim::planner {
namespace {

using plan::Accumulation;
using plan::BackwardPrefetch;
using plan::Keep;

constexpr std::array<std::string_view, 6> strategies{"full_shard",   "shard_grad_op",        "no_shard",
                                                     "hybrid_shard", "hybrid_shard_grad_op", "zero1"};

constexpr std::array<std::string_view, 7> runtimes{"foreshard-cuda", "pytorch-fsdp1",   "pytorch-fsdp2",
                                                   "pytorch-ddp",    "deepspeed-zero1", "deepspeed-zero2",
                                                   "deepspeed-zero3"};

std::string text(DType type) { return type == DType::f32 ? "fp32" : type == DType::bf16 ? "bf16" : "fp16"; }
std::string text(bool value) { return value ? "true" : "false"; }
std::string text(std::int64_t value) { return std::to_string(value); }
std::string text(int value) { return std::to_string(value); }
std::string limit_text(int limit) { return limit >= plan::unlimited ? "unlimited" : std::to_string(limit); }

std::string text(BackwardPrefetch prefetch) {
  if (prefetch == BackwardPrefetch::none) return "none";
  return prefetch == BackwardPrefetch::post ? "post" : "pre";
}

std::string text(plan::Recompute::Mode mode) {
  if (mode == plan::Recompute::Mode::none) return "none";
  return mode == plan::Recompute::Mode::full ? "full" : "selective";
}

std::string text(Accumulation accumulation) {
  if (accumulation == Accumulation::reduce) return "reduce";
  return accumulation == Accumulation::no_sync ? "no_sync" : "reduce_scatter";
}

auto tied(const Point& p) {
  return std::tie(p.runtime, p.gpus, p.strategy, p.shard_degree, p.reshard, p.prefetch, p.prefetch_depth,
                  p.forward_prefetch, p.limit, p.reduce_limit, p.recompute, p.recompute_every, p.local_batch,
                  p.micro_batches, p.accumulation, p.parameters, p.reduction, p.offload.parameters, p.offload.gradients,
                  p.offload.optimizer);
}

}  // namespace

std::string_view name_of(Runtime runtime) { return runtimes[static_cast<std::size_t>(runtime)]; }

std::optional<Runtime> runtime_named(std::string_view name) {
  const auto found = std::ranges::find(runtimes, name);
  return found == runtimes.end() ? std::nullopt : std::optional(static_cast<Runtime>(found - runtimes.begin()));
}

bool is_zero(Runtime runtime) {
  return runtime == Runtime::zero1 || runtime == Runtime::zero2 || runtime == Runtime::zero3;
}

std::optional<Strategy> only_strategy(Runtime runtime) {
  switch (runtime) {
    case Runtime::ddp:
      return Strategy::no_shard;
    case Runtime::zero1:
      return Strategy::zero1;
    case Runtime::zero2:
      return Strategy::shard_grad_op;
    case Runtime::zero3:
      return Strategy::full_shard;
    case Runtime::own:
    case Runtime::fsdp1:
    case Runtime::fsdp2:
      break;
  }
  return std::nullopt;
}

std::string_view name_of(Strategy strategy) { return strategies[static_cast<std::size_t>(strategy)]; }

Strategy strategy_of(std::string_view name) {
  const auto found = std::ranges::find(strategies, name);
  if (found != strategies.end()) return static_cast<Strategy>(found - strategies.begin());
  throw InputError(ExitCode::usage,
                   fmt::format("strategy {}: unknown; expected one of {}.{}", name, fmt::join(strategies, ", "),
                               did_you_mean(name, std::span<const std::string_view>(strategies))));
}

bool is_hybrid(Strategy strategy) {
  return strategy == Strategy::hybrid_shard || strategy == Strategy::hybrid_shard_grad_op;
}

Keep keep_of(Strategy strategy) {
  if (strategy == Strategy::zero1) return Keep::step;
  const bool until_backward = strategy == Strategy::shard_grad_op || strategy == Strategy::hybrid_shard_grad_op;
  return until_backward ? Keep::micro_batch : Keep::visit;
}

plan::Mesh mesh_of(const Point& p) {
  const int inner = p.reshard > 0 ? p.reshard : p.shard_degree;
  return {p.gpus / p.shard_degree, p.shard_degree / inner, inner};
}

plan::Settings settings_of(const plan::Settings& base, const Point& p) {
  plan::Settings settings = base;
  settings.batch.batch = p.local_batch;
  settings.mesh = mesh_of(p);
  plan::ScheduleOptions& s = settings.schedule;
  s.keep = keep_of(p.strategy);
  s.accumulation = p.strategy == Strategy::zero1 ? Accumulation::no_sync : p.accumulation;
  s.prefetch = p.prefetch;
  s.prefetch_depth = p.prefetch_depth;
  s.forward_prefetch = p.forward_prefetch;
  s.gather_limit = p.limit;
  s.reduce_limit = p.reduce_limit;
  s.micro_batches = p.micro_batches;
  s.recompute.mode = p.recompute;
  s.recompute.every = p.recompute_every;
  s.offload = p.offload;
  s.precision.parameters = p.parameters;
  s.precision.reduction = p.reduction;
  return settings;
}

namespace {

Strategy strategy_of(const plan::Mesh& mesh, Keep keep) {
  const bool hybrid = mesh.replicas > 1;
  if (mesh.shard_degree() == 1 && hybrid) return Strategy::no_shard;
  if (keep == Keep::step) return Strategy::zero1;
  if (keep == Keep::micro_batch) return hybrid ? Strategy::hybrid_shard_grad_op : Strategy::shard_grad_op;
  return hybrid ? Strategy::hybrid_shard : Strategy::full_shard;
}

}  // namespace

Point point_of(const plan::Settings& settings) {
  const plan::ScheduleOptions& s = settings.schedule;
  const plan::Mesh& mesh = settings.mesh;
  return {.gpus = mesh.world_size(),
          .strategy = strategy_of(mesh, s.keep),
          .shard_degree = mesh.shard_degree(),
          .reshard = mesh.outer > 1 ? mesh.inner : 0,
          .prefetch = s.prefetch,
          .prefetch_depth = s.prefetch_depth,
          .forward_prefetch = s.forward_prefetch,
          .limit = s.gather_limit,
          .reduce_limit = s.reduce_limit,
          .recompute = s.recompute.mode,
          .recompute_every = s.recompute.every,
          .local_batch = settings.batch.batch,
          .micro_batches = s.micro_batches,
          .accumulation = s.accumulation,
          .parameters = s.precision.parameters.value_or(DType::f32),
          .reduction = s.precision.reduction.value_or(DType::f32),
          .offload = s.offload};
}

namespace {

void add_mesh(KeyValues& keys, const Point& p) {
  if (p.runtime != Runtime::own) keys.emplace_back("runtime.profile", name_of(p.runtime));
  if (only_strategy(p.runtime)) return keys.emplace_back("parallel.world_size", text(p.gpus)), void();
  keys.insert(keys.end(), {{"parallel.world_size", text(p.gpus)},
                           {"parallel.strategy", std::string(name_of(p.strategy))},
                           {"parallel.shard_degree", is_hybrid(p.strategy) ? text(p.shard_degree) : "-1"}});
  if (p.runtime == Runtime::own)
    keys.emplace_back("parallel.reshard_after_forward", p.reshard > 0 ? text(p.reshard) : "default");
}

void add_step(KeyValues& keys, const Point& p) {
  keys.insert(keys.end(), {{"train.local_batch_size", text(p.local_batch)},
                           {"train.global_batch_size", text(p.local_batch * p.micro_batches * p.gpus)}});
  if (!is_zero(p.runtime)) keys.emplace_back("parallel.accumulation", text(p.accumulation));
  keys.emplace_back("activation_checkpoint.mode", text(p.recompute));
  if (p.runtime == Runtime::own) keys.emplace_back("activation_checkpoint.every", text(p.recompute_every));
  keys.emplace_back("precision.param", text(p.parameters));
  if (p.runtime != Runtime::ddp) keys.emplace_back("precision.reduce", text(p.reduction));
}

void add_offload(KeyValues& keys, const plan::Offload& offload) {
  keys.insert(keys.end(), {{"offload.parameters", text(offload.parameters)},
                           {"offload.gradients", text(offload.gradients)},
                           {"offload.optimizer", text(offload.optimizer)}});
}

void add_overlap(KeyValues& keys, const Point& p) {
  if (only_strategy(p.runtime)) return;
  if (p.runtime != Runtime::fsdp2) keys.emplace_back("parallel.prefetch", text(p.prefetch));
  if (p.runtime != Runtime::fsdp1) keys.emplace_back("parallel.prefetch_depth", text(p.prefetch_depth));
  if (p.runtime != Runtime::fsdp2)
    keys.insert(keys.end(),
                {{"parallel.forward_prefetch", text(p.forward_prefetch)}, {"parallel.limit", limit_text(p.limit)}});
  if (p.runtime == Runtime::own) keys.emplace_back("parallel.reduce_limit", limit_text(p.reduce_limit));
}

/// PyTorch prefetches nothing explicitly unless it is told to, whatever our own default is; DeepSpeed reduces in the
/// type that it computes in.
bool is_said(const Point& point, std::string_view key, const std::string& value, const Config& config) {
  const bool given = config.has(key) && !config.is_default(key);
  if (point.runtime != Runtime::own && !given &&
      (key == "parallel.prefetch_depth" || key == "parallel.forward_prefetch"))
    return value == "0";
  if (is_zero(point.runtime) && !given && key == "precision.reduce") return value == text(point.parameters);
  return config.has(key) && config.get<std::string>(key) == value;
}

}  // namespace

KeyValues keys_of(const Point& p) {
  KeyValues keys;
  add_mesh(keys, p);
  add_step(keys, p);
  if (p.runtime == Runtime::own) add_offload(keys, p.offload);
  add_overlap(keys, p);
  return keys;
}

std::vector<std::string> flags_of(const Point& point, const Config& config) {
  std::vector<std::string> flags;
  for (const auto& [key, value] : keys_of(point))
    if (!is_said(point, key, value, config)) flags.push_back(fmt::format("--{}={}", key, value));
  return flags;
}

bool is_kept_alike(const plan::ScheduleOptions& options) {
  return options.wrap.overrides.empty() && options.keep_of_unit.empty() && options.gather_limit_bytes == INT64_MAX;
}

namespace {

/// DDP and ZeRO have none of what orders gathers.
Point canonical_without_units(Point p) {
  const Point plain{};
  p.prefetch = plain.prefetch, p.prefetch_depth = plain.prefetch_depth, p.forward_prefetch = plain.forward_prefetch;
  p.limit = plain.limit, p.reduce_limit = plain.reduce_limit, p.recompute_every = 1;
  if (p.micro_batches == 1) p.accumulation = Accumulation::reduce;
  return p;
}

Point canonical_of_torch(Point p) {
  if (only_strategy(p.runtime)) return canonical_without_units(p);
  if (p.runtime == Runtime::fsdp2) {
    p.prefetch_depth = std::max(p.prefetch_depth, p.forward_prefetch), p.forward_prefetch = 0, p.limit = 2;
    p.prefetch = BackwardPrefetch::pre;
  } else {
    p.prefetch_depth = 1, p.forward_prefetch = std::min(p.forward_prefetch, 1);
  }
  p.recompute_every = 1, p.reduce_limit = 2;
  if (p.micro_batches == 1) p.accumulation = Accumulation::reduce;
  return p;
}

}  // namespace

Point canonical(Point p) {
  if (p.runtime != Runtime::own) return canonical_of_torch(p);
  const bool transient = keep_of(p.strategy) == Keep::visit;
  if (transient) {
    if (p.prefetch == BackwardPrefetch::pre) p.prefetch_depth = std::min(p.prefetch_depth, p.limit - 1);
    p.forward_prefetch = std::min(p.forward_prefetch, p.limit - 1);
  }
  if (p.prefetch == BackwardPrefetch::pre && p.prefetch_depth == 0) p.prefetch = BackwardPrefetch::post;
  if (!transient) p.prefetch = BackwardPrefetch::pre;
  if (!transient || p.prefetch != BackwardPrefetch::pre) p.prefetch_depth = 1;
  const int ahead = std::max(p.prefetch == BackwardPrefetch::pre ? p.prefetch_depth : 0, p.forward_prefetch);
  p.limit = transient ? std::max(2, ahead + 1) : 2;
  if (p.gpus == 1) {
    if (p.strategy == Strategy::no_shard) p.strategy = Strategy::full_shard;
    if (!p.offload.gradients) p.reduce_limit = 2;
    p.reduction = DType::f32;
  }
  if (p.recompute == plan::Recompute::Mode::none) p.recompute_every = 1;
  if (p.micro_batches == 1 && p.accumulation == Accumulation::no_sync) p.accumulation = Accumulation::reduce;
  return p;
}

namespace {

bool has_strategy(const Point& p) {
  if (const auto only = only_strategy(p.runtime)) return p.strategy == *only;
  return p.strategy != Strategy::zero1 && (p.strategy != Strategy::no_shard || p.runtime == Runtime::fsdp1);
}

}  // namespace

bool exists(const Point& p) {
  if (p.runtime == Runtime::own) return true;
  const bool memory = p.reshard == 0 && p.recompute != plan::Recompute::Mode::selective && p.recompute_every == 1 &&
                      !p.offload.parameters && !p.offload.gradients && !p.offload.optimizer;
  const bool order = p.accumulation != Accumulation::reduce_scatter && p.reduce_limit == 2;
  if (!has_strategy(p) || !memory || !order) return false;
  if (p.runtime == Runtime::ddp) return p.reduction == DType::f32;
  if (is_zero(p.runtime)) return p.accumulation == Accumulation::reduce;
  if (p.runtime == Runtime::fsdp2) return p.prefetch == BackwardPrefetch::pre && p.limit == 2;
  return p.forward_prefetch <= 1 && (p.limit == 2 || p.limit >= plan::unlimited);
}

bool operator==(const Point& a, const Point& b) { return tied(a) == tied(b); }
bool operator<(const Point& a, const Point& b) { return tied(a) < tied(b); }

}  // namespace foreshard::sim::planner
