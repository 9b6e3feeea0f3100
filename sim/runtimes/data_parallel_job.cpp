#include "sim/runtimes/data_parallel_job.hpp"

#include <fmt/format.h>

#include <array>

#include "sim/runtimes/runtime_names.hpp"

namespace foreshard::sim::torch {
namespace {

using Problems = std::vector<std::string>;

/// What FSDP has and these have not.
constexpr std::array of_shards{"parallel.shard_degree",     "parallel.reshard_after_forward",
                               "parallel.prefetch",         "parallel.prefetch_depth",
                               "parallel.forward_prefetch", "parallel.limit",
                               "parallel.reduce_limit",     "units.policy"};

void refuse_shard_keys(const Config& config, std::string_view strategy, Problems& problems) {
  const auto profile = config.get<std::string>("runtime.profile");
  for (const std::string_view key : of_shards)
    if (config.has(key) && !config.is_default(key))
      problems.push_back(fmt::format("{}: {} has no such choice; leave it out", key, profile));
  const auto given = config.get<std::string>("parallel.strategy");
  if (!config.is_default("parallel.strategy") && given != strategy)
    problems.push_back(fmt::format("parallel.strategy = {}: {} has one strategy; leave it out", given, profile));
}

/// Keys whose value decides nothing here.
void refuse_unless_default(const Config& config, std::string_view key, std::string_view taken, std::string_view why,
                           Problems& problems) {
  if (!config.is_default(key) && config.get<std::string>(key) != taken)
    problems.push_back(fmt::format("{} = {}: {}; leave it out", key, config.get<std::string>(key), why));
}

std::int64_t elements(const Config& config, std::string_view key) {
  return static_cast<std::int64_t>(config.get<double>(key));
}

bool overlaps(const Config& config, int stage) {
  const auto given = config.get<std::string>("deepspeed.overlap_comm");
  return given == "auto" ? stage == 3 : given == "true";
}

}  // namespace

void add_data_parallel_keys(Config& config) {
  config.add("torch.bucket_cap_mb", 25, "pytorch-ddp: gradients that are reduced together", {.unit = "MiB", .min = 1});
  config.add("torch.gradient_as_bucket_view", false, "pytorch-ddp: gradients are views of their buckets");
  const auto add = [&](const char* key, double value, const char* help) {
    config.add(std::string("deepspeed.") + key, value, std::string("deepspeed-*: ") + help, {.min = 0, .max = 1e15});
  };
  add("reduce_bucket_size", 5e8, "elements of gradients that are reduced together");
  config.add("deepspeed.overlap_comm", "auto", "deepspeed-*: reductions beside backward; auto = with stage 3",
             {.choices = {"auto", "true", "false"}});
  config.add("deepspeed.reduce_scatter", true, "deepspeed-*: only a gradient's owner is given its sum");
  config.add("deepspeed.use_multi_rank_bucket_allreduce", true,
             "deepspeed-zero1, -zero2: one all-reduce of a bucket, not a reduction for each owner");
  add("stage3_prefetch_bucket_size", 5e7, "elements that a module's visit prefetches");
  add("stage3_param_persistence_threshold", 1e5, "parameters of at most so many elements stay gathered");
  add("stage3_max_live_parameters", 1e9, "gathered elements up to which there is prefetching");
  add("stage3_max_reuse_distance", 1e9, "what is used again within so many elements stays gathered");
  add("sub_group_size", 1e9, "elements of a rank's part that stage 3 updates together");
}

void read_ddp(const Config& config, const plan::Settings& settings, TorchJob& job, Problems& problems) {
  refuse_shard_keys(config, "no_shard", problems);
  refuse_unless_default(config, "precision.reduce", "fp32", "DDP reduces in the type of its parameters, fp32",
                        problems);
  WrapOptions& wrap = job.run.wrap;
  wrap.world = 1, wrap.replicas = settings.mesh.world_size(), wrap.reshard = false;
  wrap.bucket_bytes = std::int64_t{config.get<int>("torch.bucket_cap_mb")} << 20;
  wrap.gradients_are_views = config.get<bool>("torch.gradient_as_bucket_view");
  if (wrap.compute != wrap.weights)
    job.notes.push_back(
        "precision.param is autocast's: parameters, gradients and moments in fp32, each weight cast once per forward; "
        "all else is computed in precision.param, where autocast leaves norms in fp32");
  wrap.reduce = wrap.weights;
  if (is_adapted(job.run.model) && wrap.compute != wrap.weights)
    problems.emplace_back(
        "model.lora_rank with precision.param: autocast casts frozen weights anew for each product, which is not "
        "modelled; expected fp32, or pytorch-fsdp1 or -fsdp2");
}

void read_zero(const Config& config, const plan::Settings& settings, TorchJob& job, Problems& problems) {
  refuse_shard_keys(config, job.run.runtime == Runtime::zero1 ? "zero1" : "", problems);
  refuse_unless_default(config, "parallel.accumulation", "reduce",
                        "stage 1 reduces in the last micro-batch, stages 2 and 3 in each", problems);
  if (is_adapted(job.run.model))
    problems.emplace_back(
        "model.lora_rank is set: LoRA is modelled for pytorch-fsdp1, -fsdp2 and -ddp, not for DeepSpeed's ZeRO");
  WrapOptions& wrap = job.run.wrap;
  wrap.world = settings.mesh.world_size(), wrap.replicas = 1;
  if (config.is_default("precision.reduce")) wrap.reduce = wrap.compute;
  ZeroOptions& zero = wrap.zero;
  zero.stage = zero_stage(job.run.runtime);
  zero.reduce_bucket = elements(config, "deepspeed.reduce_bucket_size");
  zero.overlaps = overlaps(config, zero.stage);
  zero.reduce_scatter = config.get<bool>("deepspeed.reduce_scatter");
  zero.multi_rank_reduction = config.get<bool>("deepspeed.use_multi_rank_bucket_allreduce");
  zero.prefetch_bucket = elements(config, "deepspeed.stage3_prefetch_bucket_size");
  zero.persistence_threshold = elements(config, "deepspeed.stage3_param_persistence_threshold");
  zero.max_live = elements(config, "deepspeed.stage3_max_live_parameters");
  zero.max_reuse_distance = elements(config, "deepspeed.stage3_max_reuse_distance");
  zero.sub_group = elements(config, "deepspeed.sub_group_size");
  if (config.is_default("torch.optimizer")) {
    job.run.loop = UpdateLoop::fused;
    job.notes.emplace_back("torch.optimizer is DeepSpeed's FusedAdam, where none is given");
  }
  job.notes.push_back(
      "parameters, gradients and activations are in precision.param, as after .bfloat16() or .half(); the optimizer "
      "has its part in fp32");
}

}  // namespace foreshard::sim::torch
