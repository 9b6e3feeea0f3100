#include "train/weight_names.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace foreshard::train {
namespace {

/// Of everything but the head.
std::string_view prefix_of(const model::Config& model) {
  if (std::holds_alternative<model::LlamaConfig>(model)) return "model.";
  if (std::holds_alternative<model::VitConfig>(model)) return "vit.";
  const bool body = std::holds_alternative<model::GptConfig>(model) || std::holds_alternative<model::MptConfig>(model);
  return body ? "transformer." : "";
}

/// Parts of names of transformers 5, and what files have in their place.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> vit_parts{
    {{"layers.", "encoder.layer."},
     {".attention.q_proj.", ".attention.attention.query."},
     {".attention.k_proj.", ".attention.attention.key."},
     {".attention.v_proj.", ".attention.attention.value."},
     {".attention.o_proj.", ".attention.output.dense."},
     {".mlp.fc1.", ".intermediate.dense."},
     {".mlp.fc2.", ".output.dense."}}};

std::string vit_name(std::string name) {
  for (const auto& [ours, theirs] : vit_parts)
    if (const std::size_t at = name.find(ours); at != std::string::npos) name.replace(at, ours.size(), theirs);
  return name;
}

/// Of a square patch; 0 if no square has so many values.
std::int64_t side_of(std::int64_t values) {
  const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(values))));
  return side * side == values ? side : 0;
}

}  // namespace

std::string stored_name(const model::Config& model, const model::Parameter& parameter) {
  const bool head = parameter.name.starts_with("lm_head.") || parameter.name.starts_with("classifier.");
  if (head) return parameter.name;
  const bool vit = std::holds_alternative<model::VitConfig>(model);
  return std::string(prefix_of(model)).append(vit ? vit_name(parameter.name) : parameter.name);
}

bool is_stored_transposed(const model::Config& model, const model::Parameter& parameter) {
  const auto has = [&](std::string_view part) { return parameter.name.find(part) != std::string::npos; };
  return std::holds_alternative<model::GptConfig>(model) && parameter.shape.size() == 2 &&
         (has(".c_attn.") || has(".c_proj.") || has(".c_fc."));
}

std::vector<std::int64_t> stored_shape(const model::Config& model, const model::Parameter& parameter) {
  std::vector<std::int64_t> shape = parameter.shape;
  if (is_stored_transposed(model, parameter)) std::ranges::reverse(shape);
  if (parameter.name != "embeddings.patch_embeddings.projection.weight") return shape;
  const std::int64_t values = shape[1], coloured = values % 3 == 0 ? side_of(values / 3) : 0, grey = side_of(values);
  if (coloured > 0) return {shape[0], 3, coloured, coloured};
  return grey > 0 ? std::vector<std::int64_t>{shape[0], 1, grey, grey} : shape;
}

}  // namespace foreshard::train
