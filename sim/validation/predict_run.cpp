#include "sim/validation/predict_run.hpp"

#include "sim/closed_form/memory.hpp"

namespace foreshard::sim::validation {
namespace {

using closed_form::Efficiency;
using closed_form::Gpu;
using closed_form::GpuRates;
using closed_form::Profile;
using closed_form::Step;

/// How the software runs what is not a matrix product.
std::string style_of(const PublishedRun& run) {
  if (run.runtime == Runtime::hand_written) return "hand_written";
  if (run.runtime == Runtime::xla || run.runtime == Runtime::megatron) return "xla";
  return run.compiled ? "compiled" : "eager";
}

std::string name_of(AttentionKind kind) {
  constexpr const char* names[] = {"unknown", "math", "flash1", "triton", "flash2", "flash3"};
  return names[static_cast<std::size_t>(kind)];
}

GpuRates rates_of(const PublishedRun& run, const Gpu& gpu, const Profile& profile) {
  const bool narrow = (run.products == ProductType::fp8 || run.products == ProductType::fp4) && gpu.fp8_flops > 0;
  const double nic = profile.value({"nic_gbit_per_gpu." + gpu.generation, "nic_gbit_per_gpu"});
  const double gbit = run.node_gbit_per_s ? *run.node_gbit_per_s / run.gpus_per_node : nic;
  return {.product_flops = narrow ? gpu.fp8_flops * profile.value({"fp8." + gpu.generation, "fp8"}) : gpu.half_flops,
          .attention_flops = gpu.half_flops,
          .memory_bytes = gpu.memory_bytes_per_s,
          .multiprocessors = gpu.multiprocessors,
          .node_link_bytes = gpu.node_link_bytes_per_s,
          .network_bytes = gbit / 8 * 1e9,
          .link_latency_s = profile.value({"link_latency_s"}),
          .network_latency_s = profile.value({"network_latency_s"})};
}

/// Kernels are made for heads of one size.
double head_factor(const PublishedRun& run, const std::string& attention, const Profile& p) {
  return run.width / run.heads < 96 ? p.value({"attention_heads_of_64." + attention, "attention_heads_of_64"}) : 1.0;
}

Efficiency efficiency_of(const PublishedRun& run, const Gpu& gpu, const Profile& p) {
  const std::string style = style_of(run), attention = name_of(run.attention);
  const std::string loss = run.evaluates_metrics ? "composer_metrics" : style;
  return {
      .products = p.value({"products." + gpu.generation, "products"}),
      .product_ramp_k = p.value({"products_ramp_k"}),
      .waves = p.value({"waves"}),
      .attention = head_factor(run, attention, p) *
                   p.value({"attention." + attention + "." + gpu.generation, "attention." + attention, "attention"}),
      .attention_backward = p.value({"attention_backward"}),
      .attention_ramp_s = p.value({"attention_ramp_s"}),
      .memory = p.value({"memory"}),
      .elementwise = p.value({"elementwise." + style + (run.gated_mlp ? ".gated" : ""), "elementwise." + style}),
      .loss_bytes = p.value({"loss." + loss}),
      .update_bytes = p.value({"update_bytes"}),
      .recomputed_part = p.value({run.stops_recomputation_early ? "recomputed_part.early_stop" : "recomputed_part"}),
      .network = p.value({"network"}),
      .contention = p.value({"contention"}),
      .jitter = p.value({"jitter"}),
      .host_s = p.value({"host_s." + style}),
      .issue_s = p.value({"issue_s." + style, "issue_s"})};
}

Step step_of(const PublishedRun& run, const Profile& profile) {
  return {.layers = run.layers,
          .width = run.width,
          .heads = run.heads,
          .kv_heads = run.kv_heads,
          .ffn_width = run.ffn_width,
          .vocab_size = run.vocab_size,
          .rows = run.micro_batch,
          .seq_len = run.seq_len,
          .micro_batches = run.micro_batches,
          .gated_mlp = run.gated_mlp,
          .tied_head = !run.gated_mlp || run.width < 2600,
          .gpus = run.gpus,
          .gpus_per_node = run.gpus_per_node,
          .shard_degree = run.shard_degree,
          .shards_parameters = run.stage == ZeroStage::parameters,
          .reshards_after_forward = run.reshards_after_forward,
          .shards_gradients = run.stage >= ZeroStage::gradients,
          .gathered_bytes = run.products == ProductType::f32 ? 4.0 : 2.0,
          .reduced_bytes = double(run.reduce_bytes),
          .recomputed = run.recomputes_selected ? profile.value({"recomputed.selected"}) : run.recomputed};
}

}  // namespace

double predicted_tokens_per_s(const PublishedRun& run, const Profile& profile) {
  const Gpu& gpu = profile.gpu(run.gpu, run.gpu_memory_gb);
  const double step_s =
      closed_form::step_time(step_of(run, profile), rates_of(run, gpu, profile), efficiency_of(run, gpu, profile))
          .step_s;
  return static_cast<double>(run.micro_batch * run.micro_batches * run.seq_len) / step_s;
}

double predicted_peak_bytes(const PublishedRun& run, const Profile& p) {
  const std::string style = style_of(run);
  closed_form::Kept kept{
      .activations = p.value({"activations." + style + (run.gated_mlp ? ".gated" : ""), "activations." + style}),
      .loss_bytes = p.value({"loss_memory." + style + (run.gated_mlp ? ".gated" : ""), "loss_memory." + style})};
  if (run.pure_half) kept.parameter = kept.gradient = 2, kept.moments = 4, kept.update_temporaries = 2;
  if (run.lora)
    kept.parameter = run.four_bit_base ? p.value({"four_bit_bytes"}) : 2, kept.trained_part = p.value({"lora_part"});
  kept.copies_parameters = !run.pure_half && !run.lora;
  closed_form::Step step = step_of(run, p);
  if (run.recomputes_selected) step.recomputed = p.value({"recomputed_memory.selected"});
  const double live = closed_form::peak_memory(step, kept).peak();
  return run.peak_kind == PeakKind::reserved ? live * p.value({"reserved." + style}) : live;
}

bool fits(const PublishedRun& run, const Profile& p) {
  PublishedRun held = run;
  held.peak_kind = PeakKind::reserved;
  const double outside = p.value({"outside_bytes"}) + (run.gpus > 1 ? p.value({"communicator_bytes"}) : 0);
  return predicted_peak_bytes(held, p) + outside <= p.gpu(run.gpu, run.gpu_memory_gb).memory_bytes;
}

double peak_tflops(const PublishedRun& run, const Profile& profile) {
  return profile.gpu(run.gpu, run.gpu_memory_gb).half_flops * 1e-12;
}

}  // namespace foreshard::sim::validation
