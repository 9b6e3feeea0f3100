#include "sim/validation/live_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sim/runtimes/torch_step.hpp"

namespace foreshard::sim::validation {
namespace {

using torch::Decoder;
using Family = Decoder::Family;

constexpr std::int64_t gpt2_vocab = 50257, gpt2_positions = 4096;

Decoder gpt2(std::int64_t width, std::int64_t layers, std::int64_t heads) {
  return {Family::gpt2, width, 4 * width, layers, heads, heads, gpt2_vocab, gpt2_positions, true};
}

/// The models that the script knows, from their public configurations; gpt2 with positions for long sequences.
const std::map<std::string, Decoder> decoders{
    {"gpt2", gpt2(768, 12, 12)},
    {"gpt2-medium", gpt2(1024, 24, 16)},
    {"gpt2-large", gpt2(1280, 36, 20)},
    {"gpt2-xl", gpt2(1600, 48, 25)},
    {"llama2-7b", {Family::llama, 4096, 11008, 32, 32, 32, 32000, 0, false}},
    {"llama2-13b", {Family::llama, 5120, 13824, 40, 40, 40, 32000, 0, false}},
    {"llama3-1b", {Family::llama, 2048, 8192, 16, 32, 8, 128256, 0, true}},
    {"llama3-8b", {Family::llama, 4096, 14336, 32, 32, 8, 128256, 0, false}},
    {"llama3-70b", {Family::llama, 8192, 28672, 80, 64, 8, 128256, 0, false}},
    {"qwen2-0.5b", {Family::llama, 896, 4864, 24, 14, 2, 151936, 0, true, true}},
    {"qwen2-7b", {Family::llama, 3584, 18944, 28, 28, 4, 152064, 0, false, true}},
    {"mistral-7b", {Family::llama, 4096, 14336, 32, 32, 8, 32000, 0, false}}};

constexpr std::string_view phases[] = {"forward", "backward", "update"};

/// One row by the names of its columns.
class Row {
 public:
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
  std::size_t one_of(const char* column, std::initializer_list<std::string_view> known) const {
    const auto* const found = std::ranges::find(known, text(column));
    if (found == known.end()) refuse(column, fmt::format("{}", fmt::join(known, " or ")));
    return static_cast<std::size_t>(found - known.begin());
  }

  const Decoder& model() const {
    const auto found = decoders.find(text("model"));
    std::vector<std::string> names;
    for (const auto& [name, decoder] : decoders) names.push_back(name);
    if (found == decoders.end()) refuse("model", fmt::format("one of {}", fmt::join(names, ", ")));
    return found->second;
  }

 private:
  [[noreturn]] void refuse(const char* column, const std::string& expected) const {
    throw InputError(ExitCode::bad_input, fmt::format("{}: row {}, {} is '{}'; expected {}", table_.path, index_ + 1,
                                                      column, text(column), expected));
  }

  const CsvTable& table_;
  std::size_t index_;
};

/// As the script runs: fake tensors on a CPU's dispatcher.
torch::TorchRun run_of(const Row& row) {
  torch::TorchRun run{
      .runtime = row.one_of("runtime", {"fsdp1", "fsdp2"}) == 0 ? torch::Runtime::fsdp1 : torch::Runtime::fsdp2,
      .model = row.model(),
      .batch = {row.number("local_batch"), row.number("seq_len")}};
  run.wrap.world = static_cast<int>(row.number("world_size"));
  run.wrap.reshard = row.one_of("strategy", {"full_shard", "shard_grad_op"}) == 0;
  run.wrap.compute = row.one_of("precision", {"bf16", "fp32"}) == 0 ? DType::bf16 : DType::f32;
  run.recompute = row.one_of("recompute", {"none", "full"}) == 1;
  run.foreach = row.one_of("optimizer", {"foreach", "forloop"}) == 0;
  run.traits = {.in_place_sums = false, .attention_mask = true, .norm_stats_f32 = false};
  return run;
}

}  // namespace

bool is_live_memory(const CsvTable& table) {
  const auto has = [&](const char* name) { return std::ranges::find(table.header, name) != table.header.end(); };
  return has("runtime") && has("peak_bytes");
}

void validate_live_memory(CsvTable& table, LiveMemory& into) {
  const std::size_t rows = table.rows.size();
  std::vector<std::vector<std::string>> predicted;
  for (std::size_t i = 0; i < rows; ++i) {
    const Row row(table, i);
    const auto step = static_cast<int>(row.number("step"));
    const torch::StepMemory memory = torch::live_memory(run_of(row), std::max(1, step)).steps.back();
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
