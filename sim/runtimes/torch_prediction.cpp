#include "sim/runtimes/torch_prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/runtimes/cached_memory.hpp"
#include "sim/runtimes/whole_model.hpp"

namespace foreshard::sim::torch {
namespace {

using model::OpKind;

constexpr int most_steps = 6;
constexpr double steady_within = 1e-3;

std::set<std::string> sources_of(const TorchJob& job, const Cluster& cluster) {
  const cost::GpuProfile& profile = cost::gpu_profile();
  const std::string& arch = cluster.device.architecture;
  std::set<std::string> sources{profile.gemm.rate.of(arch).source,
                                profile.gemm.sustained_part.of(arch).source,
                                profile.gemm.training_part.source,
                                profile.hbm_part.source,
                                profile.jitter_sigma.source,
                                (job.software.compiled ? profile.compiled_issue_s : profile.eager_issue_s).source};
  if (job.run.wrap.world * job.run.wrap.replicas == 1) return sources;
  const bool on_node = job.run.wrap.world * job.run.wrap.replicas <= cluster.link_domain;
  const Fabric& fabric = on_node ? cluster.intra : cluster.fabric;
  sources.insert("published: NCCL's own model of collectives (NVIDIA/nccl src/graph/tuning.cc)");
  for (const Quantity* used : {&fabric.floor_s, &fabric.efficiency, &fabric.all_gather_s_per_sqrt_byte})
    sources.insert(used->source);
  return sources;
}

void add_word(std::string& text, const std::string& word) { text += (text.empty() ? "" : " ") + word; }

std::string unit_name(std::uint32_t unit) { return unit == 0 ? "root" : fmt::format("u{}", unit - 1); }

std::string_view collective_word(OpKind kind) {
  if (kind == OpKind::all_gather) return "AG:";
  if (kind == OpKind::reduce_scatter) return "RS:";
  return kind == OpKind::all_reduce ? "AR:" : "";
}

bool is_of_a_block(const Ran& ran) {
  const bool by_wrapper = ran.kind == OpKind::retain || ran.kind == OpKind::cast_shard || ran.kind == OpKind::adamw;
  return ran.stream == Stream::compute && ran.unit > 0 && !by_wrapper;
}

AllocatorPeaks peaks_of(const allocator::Statistics& now, std::int64_t retries_before) {
  return {now.allocated.peak, now.active.peak, now.reserved.peak, now.retries - retries_before};
}

/// A checkpoint, and the step behind it.
void save_and_go_on(const TorchJob& job, TorchSteps& steps, CachedMemory& memory, TorchPrediction& prediction) {
  const allocator::Statistics& statistics = memory.allocator().statistics();
  const std::int64_t retries = statistics.retries;
  prediction.saves = true;
  memory.allocator().reset_peaks();
  save(job.run, *job.saving, memory);
  steps.step();
  prediction.save = peaks_of(statistics, retries);
}

void run_steps(const TorchJob& job, Gpu& gpu, CachedMemory& memory, TorchPrediction& prediction) {
  if (job.loading == allocator::Loading::whole) load_whole(job.run, job.load_type, memory);
  TorchSteps steps(job.run, gpu, &memory);
  const allocator::Statistics& statistics = memory.allocator().statistics();
  prediction.memory.initial = steps.live_bytes();
  prediction.init = peaks_of(statistics, 0);
  prediction.reserved_before = statistics.reserved.current;
  for (int i = 0; i < most_steps; ++i) {
    const double before = prediction.steady.seconds;
    const std::int64_t retries = statistics.retries;
    memory.allocator().reset_peaks();
    const auto [live, times] = steps.step();
    prediction.memory.steps.push_back(live), prediction.steady = times;
    prediction.peaks.push_back(peaks_of(statistics, retries));
    if (i == 0) prediction.first = times;
    if (i > 1 && std::abs(times.seconds - before) < steady_within * times.seconds) break;
  }
  if (job.saving) save_and_go_on(job, steps, memory, prediction);
}

}  // namespace

TorchPrediction predict(const TorchJob& job, const Cluster& cluster) {
  GpuKernels kernels(cluster, job.software, job.run.wrap.world, job.run.wrap.replicas);
  Gpu gpu(kernels, job.software);
  gpu.keep_trace();
  TorchPrediction prediction{.outside_bytes = outside_memory(cluster, job.software, job.run.wrap.world,
                                                             job.run.wrap.replicas, regathers_of(job.run))
                                                  .total(),
                             .device_bytes = std::llround(cluster.device.memory_bytes.value)};
  allocator::CachingAllocator allocator(job.allocator, prediction.device_bytes, prediction.outside_bytes,
                                        driver_cost(job.run.wrap.world * job.run.wrap.replicas));
  try {
    CachedMemory memory(allocator, gpu, cluster.device);
    run_steps(job, gpu, memory, prediction);
  } catch (const DeviceIsFull& full) {
    prediction.out_of_memory = full.why.text();
    prediction.failed_step = static_cast<int>(prediction.memory.steps.size()) + (prediction.memory.initial > 0 ? 1 : 0);
  }
  prediction.ran = gpu.ran(), prediction.micro_batch_starts = gpu.micro_batch_starts();
  prediction.step_start = gpu.step_start();
  prediction.flops = flop_basis(job.run);
  const cost::GpuRates rates = rates_of(cluster.device);
  prediction.peak_flops_per_s = job.run.wrap.compute == DType::f32 ? rates.f32_flops : rates.half_flops;
  prediction.sources = sources_of(job, cluster);
  if (std::ranges::any_of(prediction.peaks, [](const AllocatorPeaks& peaks) { return peaks.retries > 0; }))
    prediction.sources.insert(cost::gpu_profile().retry_s_per_gib.source);
  return prediction;
}

FlopBasis flop_basis(const TorchRun& run) {
  if (const auto* profile = std::get_if<Profiled>(&run.model))
    return flop_basis(*profile, static_cast<double>(run.batch.rows) * run.micro_batches, run.recompute);
  const UnitShapes units = unit_shapes(run.model);
  FlopBasis basis{.attention_widths = static_cast<double>(attention_widths(run.model, run.batch.seq)),
                  .tokens = static_cast<double>(run.batch.tokens()) * run.micro_batches,
                  .recomputes = run.recompute};
  double trained_weights = 0;
  for (const auto& unit : units)
    for (const ParameterShape& shape : unit) {
      basis.parameters += static_cast<double>(shape.elements());
      if (&unit == &units.front() || shape.cols == 1) continue;
      basis.product_weights += static_cast<double>(shape.elements());
      if (shape.trained) trained_weights += static_cast<double>(shape.elements());
    }
  const auto table = static_cast<double>(head_elements(run.model));
  basis.product_weights += table;
  if (!is_adapted(run.model)) trained_weights += table;
  basis.gradient_weights =
      basis.product_weights - static_cast<double>(weights_before_trained(run.model)) + trained_weights;
  if (!is_tied(run.model)) basis.input_tables = table;
  return basis;
}

std::string order_text(std::span<const Ran> all, std::span<const std::size_t> micro_batch_starts) {
  std::string text;
  std::pair<std::uint32_t, bool> visiting;
  std::size_t micro_batch = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Ran& ran = all[i];
    if (micro_batch < micro_batch_starts.size() && micro_batch_starts[micro_batch] == i)
      add_word(text, fmt::format("|micro{}", micro_batch++)), visiting = {};
    if (const auto word = collective_word(ran.kind); !word.empty()) {
      add_word(text, std::string(word) + unit_name(ran.unit));
    } else if (is_of_a_block(ran) && visiting != std::pair{ran.unit, ran.backward}) {
      visiting = {ran.unit, ran.backward};
      add_word(text, (ran.backward ? "B:" : "F:") + unit_name(ran.unit));
    }
  }
  return text + " |step";
}

}  // namespace foreshard::sim::torch
