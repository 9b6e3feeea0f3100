#include "train/model_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "train/agreement.hpp"
#include "train/elements.hpp"
#include "train/weight_names.hpp"

namespace foreshard::train {
namespace {

using Tensors = std::map<std::string, StoredTensor, std::less<>>;

constexpr std::int64_t piece_elements = 1 << 18;
constexpr std::size_t most_problems = 8;

Tensors::iterator find(Tensors& tensors, const std::string& parameter, const std::string& stored) {
  if (const auto found = tensors.find(stored); found != tensors.end()) return found;
  for (const char* prefix : {"", "model.", "transformer.", "vit."})
    if (const auto found = tensors.find(prefix + parameter); found != tensors.end()) return found;
  return tensors.end();
}

/// Causal masks and tables of angles, which some files carry.
bool is_computed(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with("rotary_emb.inv_freq");
}

std::string shape_text(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string problem_with(const StoredTensor& tensor, const model::Parameter& parameter,
                         const std::vector<std::int64_t>& expected) {
  if (tensor.shape != expected)
    return fmt::format("{} is {}, the model's is {}", parameter.name, shape_text(tensor.shape), shape_text(expected));
  if (!tensor.dtype)
    return fmt::format("{} is of type {}, expected F32, BF16, F16 or F64", parameter.name, tensor.type);
  return "";
}

[[noreturn]] void refuse(const std::filesystem::path& path, std::vector<std::string> problems) {
  const std::size_t all = problems.size();
  problems.resize(std::min(all, most_problems));
  if (all > most_problems) problems.push_back(fmt::format("and {} more", all - most_problems));
  throw InputError(ExitCode::bad_input, fmt::format("model.weights: {} is not of this model:\n  {}", path.string(),
                                                    fmt::join(problems, "\n  ")));
}

/// Elements [first, first + count) of a tensor, converted to `to` from its element `at` on.
void copy(const StoredTensor& tensor, std::int64_t first, std::int64_t count, const Elements& to, std::int64_t at) {
  std::vector<std::byte> bytes;
  for (std::int64_t done = 0; done < count; done += piece_elements) {
    const std::int64_t now = std::min(piece_elements, count - done), width = size_bytes(*tensor.dtype);
    bytes.resize(static_cast<std::size_t>(now * width));
    read_bytes(tensor, (first + done) * width, bytes);
    const Elements from(bytes.data(), now, *tensor.dtype);
    for (std::int64_t i = 0; i < now; ++i) to.set(at + done + i, from.at(i));
  }
}

/// The same where the tensor is [cols, rows] and the parameter [rows, cols].
void copy_transposed(const StoredTensor& tensor, std::int64_t rows, std::int64_t cols, const plan::ShardPart& part,
                     const Elements& to) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.size_bytes));
  read_bytes(tensor, 0, bytes);
  const Elements from(bytes.data(), rows * cols, *tensor.dtype);
  for (std::int64_t i = 0; i < part.count; ++i) {
    const std::int64_t element = part.first + i;
    to.set(part.at + i, from.at(element % cols * rows + element / cols));
  }
}

}  // namespace

ModelWeights::ModelWeights(const std::filesystem::path& path, const model::Config& model, const model::Graph& graph) {
  Tensors tensors = read_safetensors_model(path);
  std::vector<std::string> problems;
  for (const model::Parameter& parameter : graph.parameters) {
    const auto found = find(tensors, parameter.name, stored_name(model, parameter));
    if (found == tensors.end()) {
      problems.push_back(fmt::format("{} {} is missing", parameter.name, shape_text(parameter.shape)));
      continue;
    }
    Source source{.tensor = found->second, .transposed = is_stored_transposed(model, parameter)};
    if (source.transposed) source.rows = parameter.shape[0], source.cols = parameter.shape[1];
    if (std::string problem = problem_with(source.tensor, parameter, stored_shape(model, parameter)); !problem.empty())
      problems.push_back(std::move(problem));
    sources_.push_back(std::move(source));
    tensors.erase(found);
  }
  if (!problems.empty()) refuse(path, std::move(problems));
  for (const auto& [name, tensor] : tensors)
    if (!is_computed(name)) unused_.push_back(name);
}

void ModelWeights::fill_shard(const plan::Plan& plan, std::uint32_t unit, int rank, void* shard) const {
  const plan::FlatParameter& flat = plan.units[unit];
  const Elements to(shard, flat.shard_elements, plan.master);
  std::ranges::fill(to.bytes(), std::byte{0});
  for (const plan::ShardPart& part : plan::parts_of_shard(flat, rank)) {
    const Source& source = sources_[part.piece->parameter.value];
    if (source.transposed)
      copy_transposed(source.tensor, source.rows, source.cols, part, to);
    else
      copy(source.tensor, part.first, part.count, to, part.at);
  }
}

void load_weights(const std::filesystem::path& path, const model::Config& model, comm::Communicator& communicator,
                  TrainingRank& rank) {
  if (path.empty()) return;
  together(communicator, [&] {
    const ModelWeights weights(path, model, rank.graph());
    for (std::uint32_t unit = 0; unit < rank.plan().units.size(); ++unit)
      rank.change(rank.parameter_shard(unit), [&](std::span<std::byte> shard) {
        weights.fill_shard(rank.plan(), unit, communicator.rank(), shard.data());
      });
    if (communicator.rank() != 0) return;
    log_info("weights      {} tensors of {}", weights.size(), path.string());
    if (!weights.unused().empty())
      log_warn("{} has tensors that the model does not: {}", path.string(), fmt::join(weights.unused(), ", "));
  });
}

}  // namespace foreshard::train
