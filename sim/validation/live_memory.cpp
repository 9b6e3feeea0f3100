#include "sim/validation/live_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sim/runtimes/named_models.hpp"

namespace foreshard::sim::validation {
namespace {

constexpr std::string_view phases[] = {"forward", "backward", "update"};

/// One row by the names of its columns.
class Row {
 public:
  using Words = std::initializer_list<std::string_view>;
  Row(const CsvTable& table, std::size_t index) : table_(table), index_(index) {}

  const std::string& text(const char* column) const { return table_.rows[index_][table_.column(column)]; }

  std::int64_t number(const char* column) const {
    const std::string& given = text(column);
    std::int64_t value = 0;
    const char* end = given.data() + given.size();
    const auto [parsed, error] = std::from_chars(given.data(), end, value);
    if (error != std::errc() || parsed != end || value < 0) refuse(column, "a whole number of at least 0");
    return value;
  }

  /// Position of the text among `known`.
  std::size_t one_of(const char* column, Words known) const {
    const auto* const found = std::ranges::find(known, text(column));
    if (found == known.end()) refuse(column, fmt::format("{}", fmt::join(known, " or ")));
    return static_cast<std::size_t>(found - known.begin());
  }

  const torch::Model& model() const {
    const auto& models = torch::named_models();
    const auto found = models.find(text("model"));
    std::vector<std::string> names;
    for (const auto& [name, model] : models) names.push_back(name);
    if (found == models.end()) refuse("model", fmt::format("one of {}", fmt::join(names, ", ")));
    return found->second;
  }

  [[noreturn]] void refuse(const char* column, const std::string& expected) const {
    throw InputError(ExitCode::bad_input, fmt::format("{}: row {}, {} is '{}'; expected {}", table_.path, index_ + 1,
                                                      column, text(column), expected));
  }

  bool has(const char* column) const { return std::ranges::find(table_.header, column) != table_.header.end(); }

  // Columns that a table may leave out.
  std::int64_t number_or(std::int64_t otherwise, const char* column) const {
    return has(column) ? number(column) : otherwise;
  }
  std::size_t one_of_or_first(const char* column, Words known) const { return has(column) ? one_of(column, known) : 0; }
  bool flag(const char* column) const { return one_of_or_first(column, {"False", "True"}) == 1; }

 private:
  const CsvTable& table_;
  std::size_t index_;
};

constexpr DType types[] = {DType::f32, DType::bf16, DType::f16};

/// block, root, or blocks:N.
int blocks_per_unit(const Row& row) {
  constexpr std::string_view several = "blocks:";
  if (!row.has("wrap") || row.text("wrap") == "block") return 1;
  if (row.text("wrap") == "root") return 0;
  if (!row.text("wrap").starts_with(several)) row.refuse("wrap", "block, root or blocks:N");
  return std::max(1, std::atoi(row.text("wrap").c_str() + several.size()));
}

/// Precision fp32 means none that is mixed.
torch::WrapOptions wrap_of(const Row& row) {
  using torch::BackwardPrefetch;
  constexpr BackwardPrefetch prefetches[] = {BackwardPrefetch::pre, BackwardPrefetch::post, BackwardPrefetch::none};
  torch::WrapOptions wrap;
  wrap.blocks_per_unit = blocks_per_unit(row);
  wrap.world = static_cast<int>(row.number("world_size"));
  wrap.replicas = static_cast<int>(row.number_or(1, "replicas"));
  wrap.reshard = row.one_of("strategy", {"full_shard", "shard_grad_op"}) == 0;
  wrap.reshard_to = static_cast<int>(row.number_or(0, "reshard_to"));
  wrap.weights = types[row.one_of_or_first("weights", {"fp32", "bf16", "fp16"})];
  wrap.mixed = row.text("precision") != "fp32";
  wrap.compute = wrap.mixed ? types[row.one_of("precision", {"fp32", "bf16", "fp16"})] : wrap.weights;
  wrap.reduce = wrap.mixed ? types[row.one_of_or_first("reduce", {"fp32", "bf16", "fp16"})] : wrap.weights;
  wrap.backward_prefetch = prefetches[row.one_of_or_first("backward_prefetch", {"pre", "post", "none"})];
  wrap.forward_prefetch = row.flag("forward_prefetch");
  wrap.prefetch_depth = static_cast<int>(row.number_or(0, "depth"));
  if (const std::int64_t mebibytes = row.number_or(0, "bucket_cap_mb"); mebibytes > 0)
    wrap.bucket_bytes = mebibytes << 20;
  wrap.gradients_are_views = row.flag("bucket_view");
  return wrap;
}

void drop(const Row& row, torch::Model& model) {
  using Family = torch::Decoder::Family;
  auto* decoder = std::get_if<torch::Decoder>(&model);
  if (decoder && (decoder->family == Family::gpt2 || decoder->family == Family::opt))
    decoder->dropout = true;
  else if (auto* t5 = std::get_if<torch::T5>(&model))
    t5->dropout = true;
  else
    row.refuse("dropout", "0 for all but gpt2, opt and t5");
}

/// `lora_targets` such as q+v+down.
void adapt(const Row& row, torch::Model& model) {
  auto* decoder = std::get_if<torch::Decoder>(&model);
  if (!decoder || decoder->family != torch::Decoder::Family::llama) row.refuse("lora_rank", "0 for all but llama");
  decoder->lora = {.rank = row.number("lora_rank"), .targets = 0};
  for (const std::string_view target : split(row.text("lora_targets"), '+')) {
    const auto* const found = std::ranges::find(model::projection_names, std::string(target) + "_proj");
    if (found == model::projection_names.end()) row.refuse("lora_targets", "some of q+k+v+o+gate+up+down");
    decoder->lora.targets |= static_cast<std::uint8_t>(1U << (found - model::projection_names.begin()));
  }
}

void read_optimizer(const Row& row, torch::TorchRun& run) {
  using torch::Update, torch::UpdateLoop;
  constexpr Update updates[] = {Update::adamw, Update::sgd, Update::sgd_with_momentum};
  constexpr UpdateLoop loops[] = {UpdateLoop::foreach, UpdateLoop::one_by_one, UpdateLoop::fused};
  const std::size_t given =
      row.one_of("optimizer", {"foreach", "forloop", "fused", "sgd-foreach", "sgd-forloop", "sgd-fused",
                               "sgd-momentum-foreach", "sgd-momentum-forloop", "sgd-momentum-fused"});
  run.update = updates[given / 3];
  run.loop = loops[given % 3];
}

}  // namespace

torch::TorchRun live_memory_run(const CsvTable& table, std::size_t index) {
  const Row row(table, index);
  constexpr torch::Runtime runtimes[] = {torch::Runtime::fsdp1, torch::Runtime::fsdp2, torch::Runtime::ddp};
  torch::TorchRun run{.runtime = runtimes[row.one_of("runtime", {"fsdp1", "fsdp2", "ddp"})],
                      .model = row.model(),
                      .batch = {row.number("local_batch"), row.number("seq_len")},
                      .wrap = wrap_of(row)};
  run.recompute = row.one_of("recompute", {"none", "full"}) == 1;
  if (row.has("dropout") && row.text("dropout").find_first_not_of("0.") != std::string::npos) drop(row, run.model);
  if (row.number_or(0, "lora_rank") > 0) adapt(row, run.model);
  read_optimizer(row, run);
  run.micro_batches = static_cast<int>(row.number_or(1, "micro_batches"));
  run.no_sync = row.flag("no_sync");
  run.clip = row.flag("clip");
  run.keeps_gradients = row.flag("keep_gradients");
  const bool fake = !row.flag("real");
  run.traits = {.in_place_sums = false,
                .attention_mask = fake,
                .fused_dropout = false,
                .attention_like_query = fake,
                .byte_dropout = false,
                .norm_stats_f32 = false};
  return run;
}

int live_memory_step(const CsvTable& table, std::size_t index) {
  return std::max(1, static_cast<int>(Row(table, index).number("step")));
}

bool is_live_memory(const CsvTable& table) {
  const auto has = [&](const char* name) { return std::ranges::find(table.header, name) != table.header.end(); };
  return has("runtime") && has("peak_bytes");
}

void validate_live_memory(CsvTable& table, LiveMemory& into) {
  const std::size_t rows = table.rows.size();
  std::vector<std::vector<std::string>> predicted;
  for (std::size_t i = 0; i < rows; ++i) {
    const Row row(table, i);
    const torch::StepMemory memory =
        torch::live_memory(live_memory_run(table, i), live_memory_step(table, i)).steps.back();
    const auto phase = phases[static_cast<std::size_t>(memory.peak_in)];
    into.peaks.push_back({.row = i,
                          .source = table.path,
                          .predicted = double(memory.peak),
                          .measured = double(row.number("peak_bytes"))});
    into.other_phases += row.text("peak_in") != phase;
    into.other_after_step += row.number("after_step_bytes") != memory.after_step;
    predicted.push_back({std::to_string(memory.peak), std::string(phase), std::to_string(memory.after_step)});
  }
  for (const char* column : {"predicted_peak_bytes", "predicted_peak_in", "predicted_after_step_bytes"})
    table.header.emplace_back(column);
  for (std::size_t i = 0; i < rows; ++i)
    table.rows[i].insert(table.rows[i].end(), predicted[i].begin(), predicted[i].end());
}

}  // namespace foreshard::sim::validation
