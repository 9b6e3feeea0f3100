#include "sim/validation/event_level.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "sim/cluster.hpp"
#include "sim/runtimes/torch_prediction.hpp"

namespace foreshard::sim::validation {
namespace {

using cost::AttentionKernel;
using torch::Decoder;

/// By the generation of their GPUs.
const std::map<std::string, std::string>& usual_clusters() {
  static const std::map<std::string, std::string> clusters{
      {"sm_70", "dgx-1-v100"}, {"sm_80", "dgx-a100"}, {"sm_90", "dgx-h100"}, {"sm_100", "dgx-b200"}};
  return clusters;
}

std::string why_not(const PublishedRun& run, const std::string& generation) {
  const bool fsdp = run.runtime == Runtime::pytorch_fsdp1 || run.runtime == Runtime::pytorch_fsdp2;
  if (!fsdp || run.stage < ZeroStage::gradients) return "runtime is not simulated";
  if (run.updates_one_by_one) return "Composer's blocks and metrics are not simulated";
  if (run.lora || run.offloads) return "adapters and offload are not simulated";
  if (run.products != ProductType::half) return "products are not of halves";
  if (run.recomputes_selected || (run.recomputed > 0 && run.recomputed < 1)) return "a part is recomputed";
  return usual_clusters().contains(generation) ? "" : "no cluster of such GPUs is known";
}

Cluster cluster_of(const PublishedRun& run, const closed_form::Gpu& gpu) {
  Cluster cluster = read_cluster(usual_clusters().at(gpu.generation));
  cluster.device = read_device(gpu.name);
  cluster.gpus_per_node = cluster.link_domain = cluster.nics = run.gpus_per_node;
  if (run.node_gbit_per_s) cluster.nic_bytes_per_s.value = *run.node_gbit_per_s / 8 * 1e9 / cluster.nics;
  return cluster;
}

Decoder decoder_of(const PublishedRun& run) {
  return {.family = run.gated_mlp ? Decoder::Family::llama : Decoder::Family::gpt2,
          .width = run.width,
          .ffn = run.ffn_width,
          .layers = run.layers,
          .heads = run.heads,
          .kv_heads = run.kv_heads,
          .vocab = run.vocab_size,
          .positions = run.seq_len,
          .tied = run.tied_head};
}

torch::WrapOptions wrap_of(const PublishedRun& run) {
  torch::WrapOptions wrap;
  wrap.world = run.shard_degree, wrap.replicas = run.gpus / run.shard_degree;
  wrap.reshard = run.reshards_after_forward;
  wrap.weights = run.pure_half ? DType::bf16 : DType::f32;
  wrap.reduce = run.reduce_bytes == 4 ? DType::f32 : DType::bf16;
  wrap.mixed = !run.pure_half;
  return wrap;
}

/// FSDP1's published runs are of PyTorch before 2.7.
torch::TorchJob job_of(const PublishedRun& run, int micro_batches) {
  constexpr AttentionKernel kernels[] = {AttentionKernel::fa2,    AttentionKernel::unfused, AttentionKernel::fa1,
                                         AttentionKernel::triton, AttentionKernel::fa2,     AttentionKernel::fa3,
                                         AttentionKernel::cudnn};
  torch::TorchJob job;
  job.run.runtime = run.runtime == Runtime::pytorch_fsdp1 ? torch::Runtime::fsdp1 : torch::Runtime::fsdp2;
  job.run.model = decoder_of(run);
  job.run.batch = {.rows = run.micro_batch, .seq = run.seq_len};
  job.run.wrap = wrap_of(run);
  job.run.recompute = run.recomputed == 1;
  job.run.micro_batches = micro_batches;
  job.run.traits.early_stop = run.stops_recomputation_early;
  job.software.attention = kernels[static_cast<std::size_t>(run.attention)];
  job.software.compiled = run.compiled;
  job.software.records_collectives = run.runtime == Runtime::pytorch_fsdp1;
  return job;
}

double peak_of(const torch::TorchPrediction& prediction, PeakKind kind) {
  const torch::AllocatorPeaks& peaks = prediction.peaks.back();
  const std::int64_t outside = kind == PeakKind::device ? prediction.outside_bytes : 0;
  if (kind == PeakKind::allocated) return static_cast<double>(peaks.allocated);
  return static_cast<double>(kind == PeakKind::active ? peaks.active : peaks.reserved + outside);
}

}  // namespace

std::variant<EventLevel, Skip> event_level(const PublishedRun& run, const closed_form::Profile& profile) {
  const closed_form::Gpu& gpu = profile.gpu(run.gpu, run.gpu_memory_gb);
  if (std::string reason = why_not(run, gpu.generation); !reason.empty()) return Skip{std::move(reason)};
  const Cluster cluster = cluster_of(run, gpu);
  const int simulated = static_cast<int>(std::min<std::int64_t>(2, run.micro_batches));
  const torch::TorchPrediction step = predict(job_of(run, simulated), cluster);
  if (!step.out_of_memory.empty()) return Skip{"said to run out of memory"};
  double seconds = step.steady.seconds;
  if (run.micro_batches > 2) {
    const double of_one = predict(job_of(run, 1), cluster).steady.seconds;
    seconds += static_cast<double>(run.micro_batches - 2) * (seconds - of_one);
  }
  EventLevel said{.tokens_per_s = static_cast<double>(run.micro_batch * run.micro_batches * run.seq_len) / seconds};
  if (!run.compiled) said.peak_bytes = peak_of(step, run.peak_kind);
  return said;
}

}  // namespace foreshard::sim::validation
