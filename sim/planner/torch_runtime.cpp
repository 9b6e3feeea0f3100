#include "sim/planner/torch_runtime.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/cost/stragglers.hpp"
#include "sim/runtimes/cached_memory.hpp"
#include "sim/runtimes/runtime_names.hpp"
#include "sim/runtimes/torch_prediction.hpp"

namespace foreshard::sim::planner {
namespace {

using model::OpKind;
using plan::Accumulation;

bool accumulates(const Point& p) { return p.accumulation == Accumulation::no_sync && p.micro_batches > 1; }

torch::BackwardPrefetch prefetch_of(plan::BackwardPrefetch prefetch) {
  if (prefetch == plan::BackwardPrefetch::none) return torch::BackwardPrefetch::none;
  return prefetch == plan::BackwardPrefetch::post ? torch::BackwardPrefetch::post : torch::BackwardPrefetch::pre;
}

/// Micro-batches until memory repeats: two where the first leaves gradients behind.
int distinct_micro_batches(const Point& p) {
  return std::min(p.micro_batches, accumulates(p) || only_strategy(p.runtime) ? 2 : 1);
}

/// The same with no more micro-batches than differ in memory, and nothing gathered ahead.
torch::TorchRun thriftiest(const torch::TorchJob& base, const Point& point) {
  torch::TorchRun run = job_of(base, point).run;
  run.micro_batches = distinct_micro_batches(point);
  run.wrap.forward_prefetch = false, run.wrap.prefetch_depth = 0;
  if (run.runtime == torch::Runtime::fsdp1) run.wrap.backward_prefetch = torch::BackwardPrefetch::none;
  return run;
}

/// Of the wrapper on the compute stream, not of the model. ZeRO adds up gradients there.
bool is_of_the_wrapper(const torch::Ran& ran, Runtime runtime) {
  const OpKind kind = ran.kind;
  return kind == OpKind::cast_shard || kind == OpKind::retain || kind == OpKind::cast ||
         (is_zero(runtime) && kind == OpKind::add && ran.backward);
}

double elements_of(const std::vector<torch::ParameterShape>& unit) {
  double all = 0;
  for (const torch::ParameterShape& shape : unit) all += static_cast<double>(shape.elements());
  return all;
}

/// Of the whole buffer, padded as the runtime pads it at least.
double gathered_elements(const torch::TorchRun& run, const std::vector<torch::ParameterShape>& unit) {
  const auto world = static_cast<std::int64_t>(run.wrap.world);
  const auto padded = [world](std::int64_t n) { return static_cast<double>((n + world - 1) / world * world); };
  if (run.runtime != torch::Runtime::fsdp2) return padded(static_cast<std::int64_t>(elements_of(unit)));
  double all = 0;
  for (const torch::ParameterShape& shape : unit) all += padded(shape.rows) * static_cast<double>(shape.cols);
  return all;
}

bool is_trained(const torch::ParameterShape& shape) { return shape.trained; }

/// FSDP1 reduces what is frozen along with what is trained in the same unit.
double reduced_elements(const torch::TorchRun& run, std::vector<torch::ParameterShape> unit) {
  if (run.runtime != torch::Runtime::fsdp1 || std::ranges::none_of(unit, is_trained))
    std::erase_if(unit, std::not_fn(is_trained));
  return gathered_elements(run, unit);
}

}  // namespace

torch::TorchJob job_of(const torch::TorchJob& base, const Point& p) {
  torch::TorchJob job = base;
  torch::TorchRun& run = job.run;
  const bool fsdp1 = run.runtime == torch::Runtime::fsdp1;
  run.batch.rows = p.local_batch;
  run.micro_batches = p.micro_batches;
  run.no_sync = accumulates(p);
  run.recompute = p.recompute == plan::Recompute::Mode::full;
  run.wrap.world = p.shard_degree, run.wrap.replicas = p.gpus / p.shard_degree;
  run.wrap.reshard = keep_of(p.strategy) == plan::Keep::visit;
  run.wrap.compute = p.parameters, run.wrap.reduce = p.reduction;
  run.wrap.backward_prefetch = prefetch_of(p.prefetch);
  run.wrap.forward_prefetch = fsdp1 && p.forward_prefetch > 0;
  run.wrap.prefetch_depth = fsdp1 ? 0 : std::max(p.prefetch_depth, p.forward_prefetch);
  run.wrap.limits_gathers = !fsdp1 || p.limit < plan::unlimited;
  return job;
}

Point point_of(const plan::Settings& settings, const torch::TorchJob& job) {
  const torch::WrapOptions& wrap = job.run.wrap;
  Point point = point_of(settings);
  point.runtime = *runtime_named(torch::name_of(job.run.runtime));
  point.shard_degree = wrap.world, point.reduction = wrap.reduce;
  if (const auto only = only_strategy(point.runtime)) {
    point.strategy = *only;
    return canonical(point);
  }
  point.prefetch_depth = wrap.prefetch_depth;
  point.forward_prefetch = wrap.forward_prefetch ? 1 : 0;
  point.limit = wrap.limits_gathers ? 2 : plan::unlimited;
  point.reduce_limit = 2;
  return point;
}

template <class Key, class Value, class Make>
Value TorchFacts::kept(std::map<Key, Value>& all, const Key& key, Make make) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = all.find(key); found != all.end()) return found->second;
  }
  const Value value = make();
  const std::lock_guard lock(mutex_);
  return all.emplace(key, value).first->second;
}

TorchFacts::StepKey TorchFacts::step_key(const Point& p) {
  return {p.local_batch, p.recompute == plan::Recompute::Mode::full, p.parameters, p.reduction};
}

std::int64_t TorchFacts::live_bytes(const Point& p) {
  const LiveKey key{step_key(p), p.shard_degree, std::min(2, p.gpus / p.shard_degree),
                    keep_of(p.strategy) == plan::Keep::visit, distinct_micro_batches(p)};
  return kept(live_, key, [&] {
    const torch::RunMemory memory = torch::live_memory(thriftiest(base_, p), 2);
    return std::max(memory.initial, memory.steps.back().peak);
  });
}

TorchFacts::Compute TorchFacts::compute(const Point& p) {
  return kept(compute_, step_key(p), [&] {
    torch::TorchJob alone = job_of(base_, p);
    alone.run.wrap.world = alone.run.wrap.replicas = alone.run.micro_batches = 1;
    alone.run.no_sync = false;
    torch::GpuKernels kernels(cluster_, alone.software, 1, 1);
    torch::Gpu gpu(kernels, alone.software);
    gpu.keep_trace();
    torch::TorchSteps(alone.run, gpu).step();
    Compute compute;
    for (const torch::Ran& ran : gpu.ran()) {
      if (ran.stream != torch::Stream::compute || is_of_the_wrapper(ran, p.runtime)) continue;
      (ran.kind == OpKind::adamw ? compute.update_s : compute.micro_batch_s) +=
          1e-9 * static_cast<double>(ran.span.end - ran.span.start);
    }
    return compute;
  });
}

TorchFacts::Communication TorchFacts::communication(const Point& p) {
  const MeshKey key{p.gpus, p.shard_degree, p.parameters, p.reduction};
  return kept(communication_, key, [&] {
    torch::GpuKernels kernels(cluster_, base_.software, p.shard_degree, p.gpus / p.shard_degree);
    return only_strategy(p.runtime) ? of_buckets(p, kernels) : of_units(p, kernels);
  });
}

TorchFacts::Communication TorchFacts::of_units(const Point& p, torch::GpuKernels& kernels) const {
  const torch::TorchRun run = job_of(base_, p).run;
  const torch::WrapOptions& wrap = run.wrap;
  const torch::UnitShapes units = torch::unit_shapes(run.model);
  Communication all;
  for (std::size_t at = 0; at < units.size(); ++at) {
    const double whole = gathered_elements(run, units[at]);
    const double gathered = whole * static_cast<double>(size_bytes(wrap.compute)),
                 reduced = reduced_elements(run, units[at]) * static_cast<double>(size_bytes(wrap.reduce));
    if (wrap.world > 1)
      (at == 0 ? all.root_gather_s : all.gathers_s) += kernels.collective(OpKind::all_gather, gathered).seconds;
    if (reduced == 0) continue;
    if (wrap.world > 1) all.reductions_s += kernels.collective(OpKind::reduce_scatter, reduced).seconds;
    if (wrap.replicas > 1) all.all_reductions_s += kernels.collective(OpKind::all_reduce, reduced / wrap.world).seconds;
  }
  return all;
}

/// What stage 3 leaves gathered is not gathered in a micro-batch.
TorchFacts::Communication TorchFacts::of_buckets(const Point& p, torch::GpuKernels& kernels) const {
  const torch::TorchRun run = job_of(base_, p).run;
  const torch::WrapOptions& wrap = run.wrap;
  double whole = 0, trained = 0;
  for (const auto& unit : torch::unit_shapes(run.model))
    whole += gathered_elements(run, unit), trained += reduced_elements(run, unit);
  const double gathered = whole * static_cast<double>(size_bytes(wrap.compute)),
               reduced = trained * static_cast<double>(size_bytes(wrap.reduce));
  Communication all;
  if (p.gpus == 1) return all;
  if (p.runtime == Runtime::ddp) {
    all.all_reductions_s = kernels.collective(OpKind::all_reduce, reduced).seconds;
    return all;
  }
  const bool all_reduces = !wrap.zero.reduce_scatter || (p.runtime != Runtime::zero3 && wrap.zero.multi_rank_reduction);
  all.gathers_s = kernels.collective(OpKind::all_gather, gathered).seconds;
  all.reductions_s = kernels.collective(all_reduces ? OpKind::all_reduce : OpKind::reduce_scatter, reduced).seconds;
  return all;
}

namespace {

constexpr int most_simulated = 3;  // micro-batches: the first, the last, and one that stands for all between them

/// From the first op of the second micro-batch to that of the third.
double period_s(const torch::TorchPrediction& prediction) {
  const auto start = [&](std::size_t i) { return prediction.ran[prediction.micro_batch_starts[i]].span.start; };
  return 1e-9 * static_cast<double>(start(2) - start(1));
}

std::int64_t reserved_bytes(const torch::TorchPrediction& prediction) {
  std::int64_t most = 0;
  for (const torch::AllocatorPeaks& peaks : prediction.peaks) most = std::max(most, peaks.reserved);
  return most;
}

}  // namespace

Evaluation TorchRuntime::evaluate(const Point& point) {
  torch::TorchJob job = job_of(base_, point);
  job.run.micro_batches = std::min(job.run.micro_batches, most_simulated);
  const torch::TorchPrediction prediction = torch::predict(job, cluster_);
  const bool fits = prediction.out_of_memory.empty();
  const std::int64_t least = facts_.live_bytes(point) + prediction.outside_bytes;
  if (!fits) return {.step_s = 0, .memory_bytes = std::max(prediction.device_bytes + 1, least)};
  const int others = point.micro_batches - job.run.micro_batches;
  return {.step_s = prediction.steady.seconds + (others > 0 ? others * period_s(prediction) : 0),
          .memory_bytes = reserved_bytes(prediction) + prediction.outside_bytes,
          .retries = prediction.peaks.back().retries};
}

double TorchRuntime::slowest_rank_factor(int gpus) {
  const auto found = slowest_.find(gpus);
  if (found != slowest_.end()) return found->second;
  return slowest_[gpus] =
             base_.software.varies ? cost::slowest_rank_factor(cost::gpu_profile().jitter_sigma.value, gpus) : 1;
}

/// The compute stream; and the communicators, each of which runs one collective at a time: gathers of units that stay
/// whole over micro-batches come once.
Bound TorchRuntime::bound(const Point& p) {
  const bool reduces_once = accumulates(p) || p.runtime == Runtime::zero1;
  const double micro_batches = p.micro_batches, reductions = reduces_once ? 1 : micro_batches;
  const bool reshards = keep_of(p.strategy) == plan::Keep::visit;
  const TorchFacts::Compute compute = facts_.compute(p);
  const TorchFacts::Communication all = facts_.communication(p);
  const double gathers = only_strategy(p.runtime) || (!reshards && accumulates(p)) ? 1 : micro_batches;
  const int visits = reshards && !only_strategy(p.runtime) ? 2 : 1;
  const double shard_group = gathers * (all.root_gather_s + visits * all.gathers_s) + reductions * all.reductions_s;
  const double kernels =
      slowest_rank_factor(p.gpus) * (micro_batches * compute.micro_batch_s + compute.update_s / p.shard_degree);
  const auto outside = torch::outside_memory(cluster_, base_.software, p.shard_degree, p.gpus / p.shard_degree).total();
  return {.memory_bytes = facts_.live_bytes(p) + outside,
          .seconds = std::max({kernels, shard_group, reductions * all.all_reductions_s})};
}

}  // namespace foreshard::sim::planner
