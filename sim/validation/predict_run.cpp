#include "sim/validation/predict_run.hpp"

#include <bit>

#include "sim/closed_form/memory.hpp"

namespace foreshard::sim::validation {
namespace {

using closed_form::Efficiency;
using closed_form::Gpu;
using closed_form::GpuRates;
using closed_form::Profile;
using closed_form::Step;

/// GPUs before Transformer Engine and kernels of attention.
bool is_old(const Gpu& gpu) { return gpu.generation == "sm_70" || gpu.generation == "sm_75"; }

/// How the software runs what is not a matrix product.
std::string style_of(const PublishedRun& run, const Gpu& gpu) {
  if (run.runtime == Runtime::hand_written) return "hand_written";
  if (run.runtime == Runtime::xla) return run.compiled ? "xla" : "xla_alone";
  const bool fused = run.compiled || (run.runtime == Runtime::megatron && !is_old(gpu));
  return fused ? "compiled" : "eager";
}

/// The kernel that runs: of cuDNN, FlashAttention-3's equal on sm_90 and later, FlashAttention-2's before.
std::string attention_of(const PublishedRun& run, const Gpu& gpu) {
  constexpr const char* names[] = {"flash2", "math", "flash1", "triton", "flash2", "flash3", "flash3"};
  const bool any = run.attention == AttentionKind::unknown || run.attention == AttentionKind::cudnn;
  if (any && is_old(gpu)) return "math";
  const bool new_kernels = gpu.generation == "sm_90" || gpu.generation.starts_with("sm_10");
  if (run.attention == AttentionKind::cudnn && !new_kernels) return "flash2";
  return names[static_cast<std::size_t>(run.attention)];
}

/// Kernels are made for heads of some widths, and compute with the next larger one.
std::int64_t padded_head(const PublishedRun& run, const std::string& attention) {
  const std::int64_t head = run.width / run.heads;
  if (attention == "math") return head;
  if (attention == "flash2" || attention == "flash3") return (head + 31) / 32 * 32;
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(head)));
}

/// Of a GPU, or of its generation, or of any.
double of_gpu(const std::string& name, const Gpu& gpu, const Profile& p) {
  return p.value({name + "." + gpu.name, name + "." + gpu.generation, name});
}

/// Where no constant says it, the part of the best products that training reaches.
double products_of(const Gpu& gpu, const Profile& p) {
  for (const std::string& name : {"products." + gpu.name, "products." + gpu.generation})
    if (const auto found = p.values().find(name); found != p.values().end()) return found->second;
  return p.value({"products_of_best"}) * gpu.best_products;
}

bool is_narrow(const PublishedRun& run, const Gpu& gpu) {
  return (run.products == ProductType::fp8 || run.products == ProductType::fp4) && gpu.fp8_flops > 0;
}

double cast_bytes(const PublishedRun& run, const Gpu& gpu, const Profile& p) {
  constexpr const char* names[] = {"cast_bytes.fused", "cast_bytes.tensorwise", "cast_bytes.rowwise"};
  return is_narrow(run, gpu) ? p.value({names[static_cast<std::size_t>(run.casts)]}) : 0;
}

GpuRates rates_of(const PublishedRun& run, const Gpu& gpu, const Profile& profile) {
  const bool narrow = is_narrow(run, gpu);
  const double narrower = run.products == ProductType::fp4 ? profile.value({"fp4"}) : 1;
  const double nic = of_gpu("nic_gbit_per_gpu", gpu, profile);
  const double gbit = run.node_gbit_per_s ? *run.node_gbit_per_s / run.gpus_per_node : nic;
  return {.product_flops = narrow ? narrower * gpu.fp8_flops : gpu.half_flops,
          .half_flops = gpu.half_flops,
          .memory_bytes = gpu.memory_bytes_per_s,
          .multiprocessors = gpu.multiprocessors,
          .node_link_bytes = gpu.node_link_bytes_per_s,
          .network_bytes = gbit / 8 * 1e9,
          .link_latency_s = profile.value({"link_latency_s"}),
          .network_latency_s = profile.value({"network_latency_s"})};
}

Efficiency efficiency_of(const PublishedRun& run, const Gpu& gpu, const Profile& p) {
  const std::string style = style_of(run, gpu), kernel = attention_of(run, gpu);
  const bool narrow_heads = padded_head(run, kernel) < 96;
  // The loss and two metrics of the logits, cross entropy and perplexity, each as much as the loss.
  const double losses = run.evaluates_metrics ? 3 : 1;
  return {.products = products_of(gpu, p),
          .attention = of_gpu("attention." + kernel, gpu, p) *
                       (narrow_heads ? p.value({"attention_heads_of_64." + kernel, "attention_heads_of_64"}) : 1),
          .attention_backward = p.value({"attention_backward." + kernel, "attention_backward"}),
          .attention_ramp_s = p.value({"attention_ramp_s." + kernel, "attention_ramp_s"}),
          .memory = p.value({"memory"}),
          .elementwise = p.value({"elementwise." + style + (run.gated_mlp ? ".gated" : ""), "elementwise." + style}),
          .loss_bytes = losses * p.value({"loss." + style}),
          .cast_bytes = cast_bytes(run, gpu, p),
          .update_bytes = p.value({"update_bytes"}) * (run.pure_half ? 0.5 : 1),
          .adapter_bytes = p.value({"adapter_bytes"}),
          .network = p.value({"network"}),
          .contention = p.value({"contention"}),
          .jitter = p.value({"jitter"}),
          .host_s = p.value({"host_s." + style, "host_s"}),
          .issue_s = p.value({"issue_s." + style, "issue_s"})};
}

/// FSDP casts gradients where they are reduced in fp32, and divides them by the ranks; FSDP2 leaves that to NCCL, and
/// copies them into the buffer that is reduced. Autocast casts parameters in forward (again where that is recomputed)
/// and backward, and their gradients to fp32, which FSDP casts back.
double gradient_copy_bytes(const PublishedRun& run) {
  const bool casts = run.reduce_bytes > 2;
  if (run.autocasts) return (run.recomputed > 0 ? 3 : 2) * (4 + 2) + (2 + 4) + (2 + 2);
  if (run.runtime == Runtime::pytorch_fsdp1) return casts ? 2 + 4 + 4 + 4 : 2 + 2;
  if (run.runtime == Runtime::pytorch_fsdp2) return casts ? 2 + 4 + 4 : 2 + 2;
  return 0;
}

/// FSDP does so even where it keeps them gathered from forward to backward, as with SHARD_GRAD_OP; ZeRO-2 gathers them
/// after the update.
bool shards_parameters(const PublishedRun& run) {
  const bool fsdp = run.runtime == Runtime::pytorch_fsdp1 || run.runtime == Runtime::pytorch_fsdp2;
  return run.stage == ZeroStage::parameters || (fsdp && run.stage == ZeroStage::gradients);
}

/// Of the parameters, what adapters are: rank times rows and columns of the products that have one.
double trained_part(const PublishedRun& run, const Step& step) {
  if (!run.lora) return 1;
  const double w = double(run.width), kv = w / double(run.heads) * double(run.kv_heads), f = double(run.ffn_width);
  const double queries_and_values = 2 * w + w + kv;
  const double all = queries_and_values + (w + kv) + 2 * w + (run.gated_mlp ? 3 : 2) * (w + f);
  const double sides = run.lora_of_all_products ? all : queries_and_values;
  return double(run.layers) * run.lora_rank * sides / closed_form::parameters_of(step);
}

Step blocks_of(const PublishedRun& run, const Gpu& gpu, const Profile& profile) {
  return {.layers = run.layers,
          .width = run.width,
          .heads = run.heads,
          .kv_heads = run.kv_heads,
          .ffn_width = run.ffn_width,
          .vocab_size = run.vocab_size,
          .rows = run.micro_batch,
          .seq_len = run.seq_len,
          .micro_batches = run.micro_batches,
          .attention_head_width = padded_head(run, attention_of(run, gpu)),
          .gated_mlp = run.gated_mlp,
          .tied_head = run.tied_head,
          .gpus = run.gpus,
          .gpus_per_node = run.gpus_per_node,
          .shard_degree = run.shard_degree,
          .shards_parameters = shards_parameters(run),
          .reshards_after_forward = run.reshards_after_forward,
          .shards_gradients = run.stage >= ZeroStage::gradients,
          .gathered_bytes = double(run.gather_bytes),
          .reduced_bytes = double(run.reduce_bytes),
          .gradient_copy_bytes = gradient_copy_bytes(run),
          .recomputed = run.recomputes_selected ? profile.value({"recomputed.selected"}) : run.recomputed,
          .stops_recomputation_early = run.stops_recomputation_early,
          .overlaps_backward = run.prefetches_in_backward};
}

Step step_of(const PublishedRun& run, const Gpu& gpu, const Profile& profile) {
  Step step = blocks_of(run, gpu, profile);
  step.trained = trained_part(run, step);
  return step;
}

/// Of a frozen parameter: halves, or four bits with a scale for 64, itself of 8 bits and a scale for 256 of them.
double frozen_bytes(const PublishedRun& run) {
  if (!run.four_bit_base) return 2;
  return 0.5 + (run.four_bit_scales ? 1.0 / 64 + 4.0 / (64 * 256) : 4.0 / 64);
}

closed_form::PeakMemory peak_of(const PublishedRun& run, const Profile& p) {
  const Gpu& gpu = p.gpu(run.gpu, run.gpu_memory_gb);
  const std::string style = style_of(run, gpu);
  closed_form::Kept kept{
      .activations = p.value({"activations." + style + (run.gated_mlp ? ".gated" : ""), "activations." + style}),
      .loss_bytes = p.value({"loss_memory." + style + (run.gated_mlp ? ".gated" : ""), "loss_memory." + style})};
  if (run.pure_half) kept.parameter = kept.gradient = 2, kept.moments = 4, kept.update_temporaries = 2;
  closed_form::Step step = step_of(run, gpu, p);
  if (run.lora) kept.adapter = kept.parameter, kept.parameter = frozen_bytes(run), kept.trained_part = step.trained;
  if (run.four_bit_base) kept.gathered = kept.parameter;
  // Its rate limiter lets two blocks wait besides, whose memory other streams hold.
  if (run.runtime == Runtime::pytorch_fsdp1 && run.peak_kind != PeakKind::allocated) kept.gathered_blocks = 4;
  kept.adapts_all_products = run.lora_of_all_products;
  if (run.four_bit_base) kept.table = 2;
  if (run.four_bit_base && run.recomputed == 0) kept.product_inputs = p.value({"four_bit_product_inputs"});
  kept.updates_one_by_one = run.updates_one_by_one;
  kept.copies_parameters = !run.pure_half && !run.lora;
  if (run.runtime == Runtime::pytorch_ddp && run.gpus > 1 && run.copies_gradients_to_buckets) kept.gradient *= 2;
  if ((run.compiled && run.plans_saving) || style == "hand_written")
    kept.saving = style == "hand_written" ? closed_form::Saving::fewest : closed_form::Saving::compiled,
    kept.activations = 1;
  if (run.recomputes_selected) kept.saving = closed_form::Saving::selected, kept.activations = 1, step.recomputed = 0;
  return closed_form::peak_memory(step, kept);
}

}  // namespace

std::string style_of(const PublishedRun& run, const Profile& profile) {
  return style_of(run, profile.gpu(run.gpu, run.gpu_memory_gb));
}

double predicted_tokens_per_s(const PublishedRun& run, const Profile& profile) {
  const Gpu& gpu = profile.gpu(run.gpu, run.gpu_memory_gb);
  const double step_s =
      closed_form::step_time(step_of(run, gpu, profile), rates_of(run, gpu, profile), efficiency_of(run, gpu, profile))
          .step_s;
  return static_cast<double>(run.micro_batch * run.micro_batches * run.seq_len) / step_s;
}

double predicted_peak_bytes(const PublishedRun& run, const Profile& p) {
  const closed_form::PeakMemory memory = peak_of(run, p);
  return run.peak_kind == PeakKind::reserved ? memory.held(p.value({"reserved"})) : memory.peak();
}

bool fits(const PublishedRun& run, const Profile& p, double fragmentation) {
  const double outside = p.value({"outside_bytes"}) + (run.gpus > 1 ? p.value({"communicator_bytes"}) : 0);
  return peak_of(run, p).needed(fragmentation) + outside <= p.gpu(run.gpu, run.gpu_memory_gb).memory_bytes;
}

bool fits(const PublishedRun& run, const Profile& p) { return fits(run, p, p.value({"reserved"})); }

PublishedRun completed(PublishedRun run, const Profile& profile) {
  PublishedRun recomputing = run;
  recomputing.recomputed = 1;
  if (!run.shard_degree_stated && !fits(recomputing, profile, 1)) run.shard_degree = run.gpus;
  // Nine of ten predictions of memory are within 7 %; what is no further over the GPU's may have fitted.
  if (!run.recomputation_stated && !fits(run, profile, 0.93)) run.recomputed = 1;
  return run;
}

double peak_tflops(const PublishedRun& run, const Profile& profile) {
  return profile.gpu(run.gpu, run.gpu_memory_gb).half_flops * 1e-12;
}

}  // namespace foreshard::sim::validation
