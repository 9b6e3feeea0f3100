#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "sim/validation/published_run.hpp"

namespace foreshard::sim::validation {
namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool has_any(const std::string& text, std::initializer_list<const char*> words) {
  return std::ranges::any_of(words, [&](const char* word) { return text.find(word) != std::string::npos; });
}

/// The number that stands directly behind `word`, or `otherwise`.
int number_after(const std::string& text, const std::string& word, int otherwise) {
  const std::size_t at = text.find(word);
  if (at == std::string::npos) return otherwise;
  int number = otherwise;
  std::from_chars(text.data() + at + word.size(), text.data() + text.size(), number);
  return number;
}

/// Reads one row; the first thing that rules it out is the reason to skip it.
class Interpretation {
 public:
  explicit Interpretation(const PublishedRow& row)
      : row_(row),
        model_(lower(row.model)),
        strategy_(lower(row.strategy)),
        precision_(lower(row.precision)),
        recompute_(lower(row.activation_ckpt)),
        kernels_(lower(row.compile_or_flash)),
        notes_(lower(row.notes)),
        source_(lower(row.source)) {}

  std::variant<PublishedRun, Skip> run() {
    if (std::string reason = ruled_out(); !reason.empty()) return Skip{std::move(reason)};
    read_shape();
    read_cluster();
    read_batch();
    read_strategy();
    read_kernels();
    read_precision();
    read_recomputation();
    run_.peak_kind = peak_kind(lower(row_.peak_mem_kind));
    return run_;
  }

 private:
  std::string ruled_out() const {
    if (row_.plain_dp != "yes") return "not plain data parallelism";
    if (!row_.exclude.empty() && !row_.exclude.starts_with("memory")) return "excluded: " + row_.exclude;
    if (std::string absent = absent_columns(); !absent.empty()) return "not stated: " + absent;
    if (*row_.d_model % std::max<std::int64_t>(1, *row_.heads) != 0) return "heads do not divide the width";
    return "";
  }

  std::string absent_columns() const {
    std::string absent;
    const auto need = [&](const char* name, bool there) {
      if (!there) absent += (absent.empty() ? "" : ", ") + std::string(name);
    };
    need("layers", row_.layers.has_value());
    need("d_model", row_.d_model.has_value());
    need("heads", row_.heads.has_value());
    need("d_ff", row_.d_ff.has_value());
    need("vocab", row_.vocab.has_value());
    need("seq_len", row_.seq_len.has_value());
    need("gpu", !row_.gpu.empty());
    need("n_gpus", row_.n_gpus.has_value());
    need("micro_batch_per_gpu", row_.micro_batch_per_gpu.has_value());
    return absent;
  }

  void read_shape() {
    run_.layers = *row_.layers;
    run_.width = *row_.d_model;
    run_.heads = *row_.heads;
    run_.kv_heads = row_.kv_heads.value_or(run_.heads);
    run_.ffn_width = *row_.d_ff;
    run_.vocab_size = *row_.vocab;
    run_.seq_len = *row_.seq_len;
    run_.gated_mlp = has_any(model_, {"llama", "mistral", "mixtral", "qwen", "gemma", "yi ", "yi-", "phi-3", "granite",
                                      "olmo", "deepseek", "baichuan", "internlm", "vicuna"});
    run_.tied_head = !run_.gated_mlp || run_.width < 2600;
    if (row_.params_b) read_matrices(1e9 * *row_.params_b);
  }

  /// How many matrices blocks have, and tables the model, follows from its parameters, if any count is 5 % near and
  /// nearer than what the name says.
  void read_matrices(double parameters) {
    const std::pair named{run_.gated_mlp, run_.tied_head};
    double nearest = std::min(0.05, distance(named.first, named.second, parameters) - 0.005);
    for (const bool gated : {named.first, !named.first})
      for (const bool tied : {named.second, !named.second}) {
        const double off = distance(gated, tied, parameters);
        if (off >= nearest) continue;
        nearest = off;
        run_.gated_mlp = gated, run_.tied_head = tied;
      }
  }

  /// From the parameters in matrices, with or without a table of positions, which gated blocks do without.
  double distance(bool gated, bool tied, double parameters) const {
    const auto d = [](std::int64_t n) { return static_cast<double>(n); };
    const double attention = d(run_.width) * (2 + 2 * d(run_.kv_heads) / d(run_.heads)) * d(run_.width);
    const double feed_forward = (gated ? 3 : 2) * d(run_.width * run_.ffn_width);
    const double tables = (tied ? 1 : 2) * d(run_.width * run_.vocab_size);
    const double all = d(run_.layers) * (attention + feed_forward) + tables;
    const double positions = gated ? 0 : d(run_.width * run_.seq_len);
    return std::min(std::abs(all / parameters - 1), std::abs((all + positions) / parameters - 1));
  }

  void read_cluster() {
    run_.gpu = gpu();
    run_.gpu_memory_gb = row_.gpu_mem_gb.value_or(0);
    run_.gpus = static_cast<int>(*row_.n_gpus);
    run_.gpus_per_node = static_cast<int>(row_.gpus_per_node.value_or(std::min(8, run_.gpus)));
    const std::string network = lower(row_.interconnect);
    if (row_.gpu.starts_with("GB") && has_any(network, {"nvl72"})) run_.gpus_per_node = std::min(72, run_.gpus);
    run_.node_gbit_per_s = node_network(network);
  }

  /// The H100 of torchtitan's authors is the one of 96 GB and 500 W, as their tables say where they print its memory.
  std::string gpu() const {
    if (source_.starts_with("pytorch/") && row_.gpu == "H100" && !row_.gpu_mem_gb) return "h100-sxm-96gb";
    return has_any(row_.gpu, {"(H100 80GB implied)"}) ? "H100 80GB" : row_.gpu;
  }

  /// "1600 Gbps node-node", "8 x 200 Gb/s", "400 Gb/s … per GPU", "3.2 Tbps".
  std::optional<double> node_network(const std::string& text) const {
    for (const auto& [unit, factor] : {std::pair{" gb", 1.0}, std::pair{" tb", 1000.0}}) {
      const std::size_t at = text.find(unit);
      if (at == std::string::npos) continue;
      std::size_t first = at;
      while (first > 0 && (std::isdigit(static_cast<unsigned char>(text[first - 1])) || text[first - 1] == '.'))
        --first;
      double rate = 0;
      std::from_chars(text.data() + first, text.data() + at, rate);
      if (rate <= 0) continue;
      const bool each = text.find("per gpu") != std::string::npos;
      const int copies = std::max({number_before(text, first), number_after(text, "x", 1), 1});
      return rate * factor * (each ? run_.gpus_per_node : copies);
    }
    return std::nullopt;
  }

  /// The 8 of "8 x 200".
  static int number_before(const std::string& text, std::size_t end) {
    const std::size_t cross = text.rfind(" x ", end);
    if (cross == std::string::npos || cross + 3 != end) return 1;
    std::size_t first = cross;
    while (first > 0 && std::isdigit(static_cast<unsigned char>(text[first - 1]))) --first;
    int number = 1;
    std::from_chars(text.data() + first, text.data() + cross, number);
    return number;
  }

  void read_batch() {
    run_.micro_batch = *row_.micro_batch_per_gpu;
    const std::int64_t once = run_.micro_batch * run_.gpus * run_.seq_len;
    // Where llmq does not print its batch, it is the one that it prints everywhere else; litgpt's recipes add up 32
    // rows.
    const std::int64_t usual = is_llmq() ? 524288 : has_any(source_, {"litgpt"}) ? 32 * run_.seq_len : once;
    run_.micro_batches =
        row_.grad_accum.value_or(std::max<std::int64_t>(1, row_.global_batch_tokens.value_or(usual) / once));
  }

  void read_strategy() {
    run_.runtime = runtime();
    run_.stage = stage();
    run_.shard_degree = shard_degree();
    run_.shard_degree_stated = !has_any(strategy_, {"per-row"});
    run_.reshards_after_forward = run_.stage == ZeroStage::parameters && row_.reshard_after_forward != "no";
    run_.offloads = !row_.offload.empty() && !lower(row_.offload).starts_with("none");
    read_adapters();
  }

  /// Where the rank is not printed, it is what the software's recipes have: litgpt's 32, of queries and values;
  /// torchtune's 8, of these; fsdp_qlora's 64, of all products.
  void read_adapters() {
    run_.lora = has_any(notes_ + precision_ + model_, {"lora", "adapter"});
    const bool few = has_any(source_, {"litgpt", "torchtune"});
    const int usual = has_any(source_, {"fsdp_qlora"}) ? 64 : has_any(source_, {"litgpt"}) ? 32 : few ? 8 : 16;
    run_.lora_rank = std::max(1, number_after(notes_, " r=", number_after(notes_, "rank ", usual)));
    run_.lora_of_all_products = !few;
  }

  Runtime runtime() const {
    if (has_any(kernels_, {"hand-written"}) || is_llmq()) return Runtime::hand_written;
    if (has_any(kernels_, {"xla"})) return Runtime::xla;
    if (has_any(strategy_, {"megatron", "distributed optimizer", "fsdp group"})) return Runtime::megatron;
    if (has_any(strategy_, {"deepspeed", "zero-3 (hf"})) return Runtime::deepspeed;
    if (has_any(strategy_, {"fsdp2"})) return Runtime::pytorch_fsdp2;
    if (has_any(strategy_, {"fsdp", "hsdp"})) return Runtime::pytorch_fsdp1;
    return has_any(strategy_, {"zero"}) ? Runtime::deepspeed : Runtime::pytorch_ddp;
  }

  ZeroStage stage() const {
    if (number_after(strategy_, "x fsdp ", 0) == 1) return ZeroStage::none;
    if (has_any(strategy_, {"single", "ddp", "no_shard"}) && !has_any(strategy_, {"optimizer"})) return ZeroStage::none;
    if (has_any(strategy_, {"zero-1", "distributed optimizer"})) return ZeroStage::optimizer;
    if (has_any(strategy_, {"zero-2", "grad_op", "stage 2"})) return ZeroStage::gradients;
    return ZeroStage::parameters;
  }

  int shard_degree() const {
    if (run_.stage == ZeroStage::none) return 1;
    const int inside = has_any(strategy_, {"hsdp", "hybrid"}) ? std::min(run_.gpus, run_.gpus_per_node) : run_.gpus;
    const int group = number_after(strategy_, "x fsdp ", number_after(strategy_, "fsdp group ", inside));
    const int named = number_after(strategy_, "f=", group);
    return run_.gpus % std::max(named, 1) == 0 ? std::max(named, 1) : run_.gpus;
  }

  void read_precision() {
    if (has_any(precision_, {"fp4", "nvfp4"}))
      run_.products = ProductType::fp4;
    else if (has_any(precision_, {"fp8", "float8", "e4m3"}))
      run_.products = ProductType::fp8;
    else if (precision_ == "fp32" || precision_ == "tf32")
      run_.products = ProductType::f32;
    // Composer's DEFAULT left parameters in fp32 to autocast in its first year, and casts them since.
    run_.autocasts = has_any(precision_, {"mixed_precision default"}) && precedes_torch_2_1();
    run_.gather_bytes = run_.autocasts || run_.products == ProductType::f32 ? 4 : 2;
    run_.reduce_bytes = reduces_in_f32() ? 4 : 2;
    run_.casts = casts();
    run_.four_bit_base = has_any(precision_ + notes_, {"nf4", "4-bit", "qlora"});
    run_.four_bit_scales = has_any(precision_ + notes_, {"nf4-dq", "double quant"});
    run_.pure_half = is_pure_half();
  }

  bool reduces_in_f32() const {
    return run_.products == ProductType::f32 || run_.runtime == Runtime::pytorch_fsdp2 ||
           run_.runtime == Runtime::xla ||
           has_any(precision_, {"fp32 reduc", "fp32 grad", "reduce fp32", "reduction in fp32"});
  }

  Casts casts() const {
    if (!run_.compiled || run_.runtime > Runtime::pytorch_fsdp2) return Casts::fused;
    return has_any(precision_, {"rowwise"}) ? Casts::rowwise : Casts::tensorwise;
  }

  /// vectorlm loads models in bf16 with its flag use_mp; torchtune and fsdp_qlora train in the type that they name.
  bool is_pure_half() const {
    return is_llmq() || has_any(precision_, {"bf16-true", "fp16-true", "use_mp"}) || has_any(source_, {"fsdp_qlora"}) ||
           (precision_ == "bf16" && (run_.gpus == 1 || has_any(source_, {"torchtune"})));
  }

  /// Of a block's products about 0.6 are of the feed-forward layer and 0.4 around attention.
  void read_recomputation() {
    if (recompute_.starts_with("full") || has_any(recompute_, {"recompute-block"})) run_.recomputed = 1;
    if (has_any(recompute_, {"every 2nd"})) run_.recomputed = 0.5;
    if (has_any(recompute_, {"recompute-ffn", "/ffn"})) run_.recomputed += 0.6;
    if (has_any(recompute_, {"recompute-att", "/att"})) run_.recomputed += 0.4;
    run_.recomputed = std::min(run_.recomputed, 1.0);
    run_.recomputes_selected = recompute_.starts_with("selective") && run_.recomputed == 0;
    if (run_.recomputes_selected && row_.hfu_pct && row_.mfu_pct) read_recomputed_part();
    // Megatron keeps activations in fewer bytes, and on the host, before it recomputes.
    run_.recomputation_stated = !recompute_.empty() || run_.runtime == Runtime::megatron;
  }

  /// HFU counts recomputation, a third of what MFU counts if it is of all blocks.
  void read_recomputed_part() {
    run_.recomputed = std::clamp(3 * (*row_.hfu_pct / *row_.mfu_pct - 1), 0.0, 1.0);
    run_.recomputes_selected = false;
  }

  void read_kernels() {
    run_.compiled = is_compiled();
    // Thunder leaves that to Inductor only where it compiles whole regions.
    run_.plans_saving = !has_any(kernels_, {"thunder"}) ||
                        (has_any(kernels_, {"torchcompile"}) && !has_any(kernels_, {"torchcompile_cat"}));
    run_.copies_gradients_to_buckets = !has_any(kernels_, {"thunder"});
    run_.attention = attention();
    run_.evaluates_metrics = has_any(kernels_, {"torch 1.13"}) && has_any(source_, {"mosaicml examples"});
    run_.stops_recomputation_early = !precedes_torch_2_1() && run_.runtime != Runtime::deepspeed;
    // Composer's default is BACKWARD_POST.
    run_.prefetches_in_backward = !is_composer();
    run_.updates_one_by_one = is_composer();
  }

  bool is_composer() const { return has_any(source_, {"mosaicml", "llm-foundry", "composer"}); }

  /// torchtune's table adds one thing after another, compilation second.
  bool is_compiled() const {
    const std::size_t steps = notes_.find("cumulative step:");
    if (steps != std::string::npos) return !has_any(notes_.substr(steps, notes_.find(';') - steps), {"packed"});
    if (run_.runtime == Runtime::xla) return has_any(kernels_, {"transformer engine"});  // with its fused blocks
    return has_any(kernels_, {"torch.compile", "inductor", "torchcompile", "thunder"}) &&
           !has_any(kernels_, {"no torch.compile", "no compile"});
  }

  /// llm-foundry's tables of 2023 are in mixed precision PURE, those that replaced them in DEFAULT.
  bool precedes_torch_2_1() const {
    return has_any(kernels_, {"torch 1.13"}) || (source_.starts_with("llm-foundry") && has_any(precision_, {"pure"}));
  }

  bool is_llmq() const { return has_any(source_, {"llmq"}); }

  AttentionKind attention() const {
    if (has_any(kernels_, {"triton"})) return AttentionKind::triton;
    if (has_any(kernels_, {"torch 1.13"})) return AttentionKind::flash1;
    if (has_any(kernels_, {"flash v3", "flashattention-3"})) return AttentionKind::flash3;
    if (has_any(kernels_, {"xla", "transformer engine", "cudnn", "hand-written"}) || is_llmq())
      return AttentionKind::cudnn;
    if (has_any(kernels_, {"sdpa", "flash"})) return AttentionKind::flash2;
    if (has_any(kernels_, {"thunder"}) || run_.runtime == Runtime::megatron) return AttentionKind::cudnn;
    return AttentionKind::unknown;
  }

  static PeakKind peak_kind(const std::string& text) {
    if (text.starts_with("allocated")) return PeakKind::allocated;
    if (text.starts_with("active")) return PeakKind::active;
    if (text.starts_with("reserved")) return PeakKind::reserved;
    return has_any(text, {"nvidia-smi"}) ? PeakKind::device : PeakKind::unknown;
  }

  const PublishedRow& row_;
  std::string model_, strategy_, precision_, recompute_, kernels_, notes_, source_;
  PublishedRun run_;
};

/// fms-fsdp counts heads of keys: of its rows that print tokens as well, those of 70 B say so.
double flops_per_token(const PublishedRow& row, const PublishedRun& run) {
  const bool of_key_heads = has_any(lower(row.notes), {"palm/nanogpt style"});
  const std::int64_t heads = of_key_heads ? run.kv_heads : run.heads;
  const double attention = 12.0 * static_cast<double>(run.layers * run.width / run.heads * heads * run.seq_len);
  return 6e9 * row.params_b.value_or(0) + attention;
}

}  // namespace

std::string_view name_of(Runtime runtime) {
  constexpr std::string_view names[] = {"pytorch-ddp", "pytorch-fsdp1", "pytorch-fsdp2", "deepspeed",
                                        "megatron",    "xla",           "hand-written"};
  return names[static_cast<std::size_t>(runtime)];
}

std::variant<PublishedRun, Skip> interpret(const PublishedRow& row) { return Interpretation(row).run(); }

std::optional<double> measured_tokens_per_s(const PublishedRow& row, const PublishedRun& run, double peak_tflops) {
  if (row.tokens_per_s_per_gpu) return row.tokens_per_s_per_gpu;
  const bool of_one = has_any(lower(row.notes), {"one micro-batch iteration"});
  const auto tokens = static_cast<double>(run.micro_batch * (of_one ? 1 : run.micro_batches) * run.seq_len);
  if (row.step_time_s) return tokens / *row.step_time_s;
  if (!row.params_b) return std::nullopt;
  if (row.tflops_per_gpu) return *row.tflops_per_gpu * 1e12 / flops_per_token(row, run);
  if (row.mfu_pct) return *row.mfu_pct / 100 * peak_tflops * 1e12 / flops_per_token(row, run);
  return std::nullopt;
}

}  // namespace foreshard::sim::validation
