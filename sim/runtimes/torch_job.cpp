#include "sim/runtimes/torch_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sim/runtimes/data_parallel_job.hpp"
#include "sim/runtimes/runtime_names.hpp"
#include "sim/runtimes/torch_model.hpp"

namespace foreshard::sim::torch {
namespace {

using Problems = std::vector<std::string>;

/// Keys of ours without a meaning here: any value but the default is refused.
struct Absent {
  std::string_view key, why;
};
constexpr std::array absent{
    Absent{"offload.parameters", "offload is not modelled for PyTorch"},
    Absent{"offload.gradients", "offload is not modelled for PyTorch"},
    Absent{"offload.optimizer", "offload is not modelled for PyTorch"},
    Absent{"units.override", "PyTorch is modelled with one strategy for all units"},
    Absent{"units.skip", "steps without some blocks are not modelled for PyTorch"},
    Absent{"units.frozen", "frozen parameters are not modelled for PyTorch"},
    Absent{"model.lora_base", "a base in four bits is not modelled for PyTorch"},
    Absent{"units.ignored", "ignored parameters are not modelled for PyTorch"},
    Absent{"precision.master", "parameters kept in bf16 are not modelled for PyTorch and DeepSpeed"},
    Absent{"precision.output", "PyTorch's blocks hand on what they compute in"},
    Absent{"activation_checkpoint.every", "every block or none is recomputed"},
};

std::string refusal(const Config& config, std::string_view key, std::string_view why) {
  return fmt::format("{} = {}: {}; leave it out", key, config.get<std::string>(key), why);
}

bool is_fsdp1(const Config& config) { return config.get<std::string>("runtime.profile") == "pytorch-fsdp1"; }

Runtime runtime_of(const Config& config) {
  return runtime_named(config.get<std::string>("runtime.profile")).value_or(Runtime::fsdp2);
}

/// "2.15" or "2.28.3", with as many numbers as `count`.
network::Version read_version(const Config& config, std::string_view key, std::size_t count, Problems& problems) {
  const auto text = config.get<std::string>(key);
  const std::vector<std::string_view> parts = split(text, '.');
  std::array<int, 3> numbers{};
  bool good = parts.size() == count;
  for (std::size_t i = 0; good && i < count; ++i)
    good = std::from_chars(parts[i].data(), parts[i].data() + parts[i].size(), numbers[i]).ec == std::errc();
  if (!good)
    problems.push_back(fmt::format("{} = {}: expected a release such as {}", key, text, count == 2 ? "2.4" : "2.21.5"));
  return {numbers[0], numbers[1], numbers[2]};
}

/// What changed between releases of PyTorch.
void read_release(const Config& config, TorchJob& job, Problems& problems) {
  using network::Version;
  const Version release = read_version(config, "torch.release", 2, problems);
  job.run.traits.early_stop = release >= Version{2, 1, 0};
  job.run.traits.early_fsdp1 = release < Version{2, 0, 0};
  job.run.traits.early_fsdp2 = release < Version{2, 5, 0};
  job.run.traits.second_denominator = release < Version{2, 1, 0};
  job.software.lazy_loading = release >= Version{2, 0, 0};
  job.software.records_collectives = release < Version{2, 7, 0};
}

/// T5 wrote its attention out, returned its cache in training too, and drops as its own configuration says.
void read_transformers4(TorchJob& job, Problems& problems) {
  auto* model = std::get_if<T5>(&job.run.model);
  if (!model) return problems.emplace_back("torch.modules = transformers4: modelled for T5 only; leave it out"), void();
  model->written_out = model->dropout = model->returns_cache = true;
}

/// minGPT is a GPT whose modules are others than those of transformers.
void read_modules(const Config& config, TorchJob& job, Problems& problems) {
  const auto modules = config.get<std::string>("torch.modules");
  if (modules == "transformers4") read_transformers4(job, problems);
  if (modules != "mingpt") return;
  auto* model = std::get_if<Decoder>(&job.run.model);
  if (!model || model->family != Decoder::Family::gpt2) {
    problems.emplace_back("torch.modules = mingpt: expected a model of GPT's family; leave it out");
    return;
  }
  model->family = Decoder::Family::mingpt;
}

cost::AttentionKernel attention_of(const std::string& name) {
  for (const auto kernel : {cost::AttentionKernel::unfused, cost::AttentionKernel::fa1, cost::AttentionKernel::triton,
                            cost::AttentionKernel::fa3, cost::AttentionKernel::cudnn})
    if (name == cost::name_of(kernel)) return kernel;
  return cost::AttentionKernel::fa2;
}

Software read_software(const Config& config, Problems& problems) {
  return {.nccl = read_version(config, "torch.nccl", 3, problems),
          .attention = attention_of(config.get<std::string>("torch.attention")),
          .tf32 = config.get<bool>("torch.tf32"),
          .compiled = config.get<bool>("torch.compile"),
          .step_host_s = config.get<double>("torch.step_host_s")};
}

/// Every rank holds its part of what is not sharded here.
void divide_tables(TorchRun& run) {
  const std::int64_t ranks = std::int64_t{run.wrap.world} * run.wrap.replicas;
  if (auto* profile = std::get_if<Profiled>(&run.model))
    profile->tables_bytes = (profile->tables_bytes + ranks - 1) / ranks;
}

void read_strategy(const plan::Settings& settings, TorchRun& run, Problems& problems) {
  const plan::Mesh& mesh = settings.mesh;
  run.wrap.world = mesh.shard_degree(), run.wrap.replicas = mesh.replicas;
  run.wrap.reshard = settings.schedule.keep == plan::Keep::visit;
  if (mesh.outer > 1)
    problems.push_back("parallel.reshard_after_forward is a number: not modelled for PyTorch; take always or never");
  if (settings.schedule.keep == plan::Keep::step && mesh.shard_degree() > 1)
    problems.push_back("parallel.strategy = zero1 keeps parameters over steps: FSDP does not; take shard_grad_op");
}

/// Blocks of an encoder and a decoder cannot be in one unit.
void read_policy(const Config& config, const plan::Settings& settings, TorchRun& run, Problems& problems) {
  using Policy = plan::Wrap::Policy;
  const plan::Wrap& wrap = settings.schedule.wrap;
  if (wrap.policy == Policy::none) run.wrap.blocks_per_unit = 0;
  if (wrap.policy == Policy::blocks) run.wrap.blocks_per_unit = static_cast<int>(wrap.count);
  if (wrap.policy != Policy::none && wrap.policy != Policy::blocks && wrap.policy != Policy::block)
    problems.push_back(refusal(config, "units.policy", "for PyTorch expected block, blocks:N or none"));
  const auto* t5 = std::get_if<T5>(&run.model);
  if (t5 && run.wrap.blocks_per_unit > 1 && t5->layers % run.wrap.blocks_per_unit != 0)
    problems.push_back(
        refusal(config, "units.policy", fmt::format("expected a divisor of the {} blocks of each stack", t5->layers)));
}

/// FSDP1 prefetches one unit in forward or none explicitly; FSDP2 as many as are named, in both directions.
void read_prefetch(const Config& config, const plan::Settings& settings, TorchJob& job) {
  WrapOptions& wrap = job.run.wrap;
  const auto& schedule = settings.schedule;
  if (schedule.prefetch == plan::BackwardPrefetch::post) wrap.backward_prefetch = BackwardPrefetch::post;
  if (schedule.prefetch == plan::BackwardPrefetch::none) wrap.backward_prefetch = BackwardPrefetch::none;
  const bool asked = !config.is_default("parallel.forward_prefetch") && schedule.forward_prefetch > 0;
  if (is_fsdp1(config)) {
    wrap.forward_prefetch = asked;
    if (!asked) job.notes.emplace_back("parallel.forward_prefetch is implicit: by issuing gathers ahead of the device");
    return;
  }
  if (asked || !config.is_default("parallel.prefetch_depth"))
    wrap.prefetch_depth = std::max(asked ? schedule.forward_prefetch : 0, schedule.prefetch_depth);
  wrap.async_gathers = config.get<bool>("torch.unshard_async");
  if (wrap.prefetch_depth > 0)
    job.notes.push_back(fmt::format("each unit names {} to prefetch, in forward and in backward", wrap.prefetch_depth));
}

void read_limits(const Config& config, const plan::Settings& settings, TorchJob& job, Problems& problems) {
  if (config.is_default("parallel.limit")) return;
  const int limit = settings.schedule.gather_limit;
  if (!is_fsdp1(config))
    problems.push_back(refusal(config, "parallel.limit", "FSDP2 has no rate limiter"));
  else if (limit != 2 && limit != plan::unlimited)
    problems.push_back(refusal(config, "parallel.limit", "limit_all_gathers is 2 or unlimited"));
  job.run.wrap.limits_gathers = limit != plan::unlimited;
}

/// FSDP2 keeps as many inputs of reduce-scatters as it is told, and one unless it is told.
void read_reductions(const Config& config, const plan::Settings& settings, TorchRun& run, Problems& problems) {
  if (config.is_default("parallel.reduce_limit")) return;
  if (is_fsdp1(config)) return problems.push_back(refusal(config, "parallel.reduce_limit", "FSDP1 has no such limit"));
  run.wrap.reductions = settings.schedule.reduce_limit;
}

void read_prefetch_problems(const Config& config, Problems& problems) {
  if (is_fsdp1(config)) {
    if (!config.is_default("parallel.prefetch_depth"))
      problems.push_back(refusal(config, "parallel.prefetch_depth", "FSDP1 prefetches one unit"));
  } else if (config.get<std::string>("parallel.prefetch") != "pre") {
    problems.push_back(refusal(config, "parallel.prefetch", "FSDP2 always prefetches before backward"));
  }
}

UpdateLoop loop_of(std::string_view name) {
  if (name == "fused") return UpdateLoop::fused;
  return name == "foreach" ? UpdateLoop::foreach : UpdateLoop::one_by_one;
}

void read_step(const Config& config, const plan::Settings& settings, TorchRun& run, Problems& problems) {
  const auto& schedule = settings.schedule;
  run.batch = {settings.batch.batch, settings.batch.seq};
  run.micro_batches = schedule.micro_batches;
  run.no_sync = schedule.accumulation == plan::Accumulation::no_sync && schedule.micro_batches > 1;
  run.recompute = schedule.recompute.mode == plan::Recompute::Mode::full;
  run.loop = loop_of(config.get<std::string>("torch.optimizer"));
  run.keeps_gradients = config.get<bool>("torch.keep_gradients");
  run.wrap.compute = schedule.precision.parameters.value_or(DType::f32);
  if (schedule.accumulation == plan::Accumulation::reduce_scatter)
    problems.push_back(refusal(config, "parallel.accumulation", "expected reduce or no_sync"));
  if (schedule.recompute.mode == plan::Recompute::Mode::selective)
    problems.push_back(refusal(config, "activation_checkpoint.mode", "expected none or full"));
  if (schedule.update != model::OpKind::adamw)
    problems.push_back(refusal(config, "optimizer.name", "only adamw is modelled for PyTorch"));
  run.wrap.reduce = schedule.precision.reduction.value_or(DType::f32);
}

/// A flat parameter has one gradient. Source: github.com/pytorch/pytorch/pull/98221, first released in 2.1.
void read_frozen(const Config& config, TorchJob& job, Problems& problems) {
  if (job.run.runtime != Runtime::fsdp1 || !is_adapted(job.run.model)) return;
  if (!job.run.traits.early_stop)  // before 2.1
    problems.push_back(refusal(config, "torch.release", "FSDP1 takes LoRA in a unit with its frozen base from 2.1 on"));
  job.notes.emplace_back(
      "model.lora_rank: with use_orig_params, FSDP1 computes and reduces the gradients of frozen parameters beside "
      "trained ones too; FSDP2 does not");
}

void read_wrapping(const Config& config, const plan::Settings& settings, TorchJob& job, Problems& problems) {
  if (job.run.runtime == Runtime::ddp) return read_ddp(config, settings, job, problems);
  if (zero_stage(job.run.runtime) > 0) return read_zero(config, settings, job, problems);
  read_strategy(settings, job.run, problems);
  read_policy(config, settings, job.run, problems);
  read_prefetch(config, settings, job);
  read_prefetch_problems(config, problems);
  read_limits(config, settings, job, problems);
  read_reductions(config, settings, job.run, problems);
}

void read_phases(const Config& config, TorchJob& job, Problems& problems) {
  const auto loading = config.get<std::string>("torch.loading"), saving = config.get<std::string>("torch.saving");
  if (loading != "sharded") job.loading = allocator::Loading::whole;
  if (loading == "whole-half") job.load_type = DType::bf16;
  if (saving == "sharded") job.saving = allocator::Saving::sharded;
  if (saving == "full-to-host") job.saving = allocator::Saving::full_to_host;
  if (saving == "full") job.saving = allocator::Saving::full;
  if (job.saving && is_adapted(job.run.model))
    problems.push_back(refusal(config, "torch.saving", "what a checkpoint of adapters gathers is not modelled"));
  if (job.run.runtime == Runtime::fsdp1 || job.run.runtime == Runtime::fsdp2) return;
  for (const char* key : {"torch.loading", "torch.saving"})
    if (!config.is_default(key)) problems.push_back(refusal(config, key, "modelled for FSDP only"));
}

/// Once the batch is read, which decides whether a window is felt.
void read_window(const Config& config, TorchJob& job) {
  job.run.traits.passes_window = config.get<std::string>("torch.attn_implementation") == "flash_attention_2";
  const auto* model = std::get_if<Decoder>(&job.run.model);
  if (job.run.traits.passes_window || !model || !has_window(*model, job.run.batch, model->layers - 1)) return;
  job.notes.push_back(
      fmt::format("torch.attn_implementation = sdpa makes a mask of {0} x {0} for the sliding window of {1} tokens, "
                  "which is slower than flash_attention_2: set torch.attn_implementation=flash_attention_2",
                  job.run.batch.seq, model->window));
}

double parameters_of(const UnitShapes& units) {
  double all = 0;
  for (const auto& unit : units)
    for (const ParameterShape& shape : unit) all += static_cast<double>(shape.elements());
  return all;
}

}  // namespace

void add_torch_keys(Config& config) {
  config.add("torch.attention", "fa2", "pytorch-*: kernel behind scaled_dot_product_attention",
             {.choices = {"unfused", "fa1", "triton", "fa2", "fa3", "cudnn"}});
  config.add("torch.attn_implementation", "sdpa",
             "pytorch-*: transformers' key: sdpa makes a mask for a sliding window, flash_attention_2 needs none",
             {.choices = {"sdpa", "flash_attention_2"}});
  config.add("torch.optimizer", "foreach", "pytorch-*: how AdamW goes over tensors",
             {.choices = {"foreach", "for-loop", "fused"}});
  config.add("torch.compile", false, "pytorch-*: blocks are compiled, so that operators on elements are fused");
  config.add("torch.tf32", false, "pytorch-*: fp32 products on tensor cores");
  config.add("torch.release", "2.15", "pytorch-*: release of PyTorch, which decides what it allocates and recomputes");
  config.add("torch.modules", "transformers",
             "pytorch-*: whose modules the model is made of: transformers 5, or before 5 (T5), or minGPT",
             {.choices = {"transformers", "transformers4", "mingpt"}});
  config.add("torch.keep_gradients", false, "pytorch-*: zero_grad(set_to_none=False)");
  config.add("torch.nccl", "2.28.3", "pytorch-*: release of NCCL");
  config.add("torch.alloc_conf", "", "pytorch-*: PYTORCH_CUDA_ALLOC_CONF, such as expandable_segments:True");
  config.add("torch.unshard_async", false,
             "pytorch-fsdp2: set_unshard_async_op, gathers take the compute stream's memory");
  config.add("torch.loading", "sharded",
             "pytorch-fsdp*: how the model comes to its device: in shards, or whole on every rank (fp32, or in a half)",
             {.choices = {"sharded", "whole", "whole-half"}});
  config.add("torch.saving", "none", "pytorch-fsdp*: what a checkpoint behind the steady step gathers",
             {.choices = {"none", "sharded", "full-to-host", "full"}});
  config.add("torch.step_host_s", 0.0, "pytorch-*: host time of a step besides its operators: data, logging",
             {.unit = "s", .min = 0, .max = 86400});
  add_data_parallel_keys(config);
}

TorchJob read_torch_job(const Config& config, const plan::Settings& settings) {
  TorchJob job;
  Problems problems;
  for (const Absent& key : absent)
    if (config.has(key.key) && !config.is_default(key.key)) problems.push_back(refusal(config, key.key, key.why));
  job.run.runtime = runtime_of(config);
  job.run.model = eager_model_of(settings.model, problems);
  job.software = read_software(config, problems);
  read_release(config, job, problems);
  read_modules(config, job, problems);
  job.allocator = allocator::parse_settings(config.get<std::string>("torch.alloc_conf"));
  read_step(config, settings, job.run, problems);
  read_wrapping(config, settings, job, problems);
  read_frozen(config, job, problems);
  read_phases(config, job, problems);
  read_window(config, job);
  divide_tables(job.run);
  if (problems.empty()) {
    job.parameters = parameters_of(unit_shapes(job.run.model));
    return job;
  }
  throw InputError(ExitCode::usage, numbered(fmt::format("{} problems with runtime.profile = {}:", problems.size(),
                                                         config.get<std::string>("runtime.profile")),
                                             problems));
}

}  // namespace foreshard::sim::torch
