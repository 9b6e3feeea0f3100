#include "train/weight_names.hpp"

namespace foreshard::train {
namespace {

/// Of everything but the head.
std::string_view prefix_of(const model::Config& model) {
  if (std::holds_alternative<model::LlamaConfig>(model)) return "model.";
  const bool body = std::holds_alternative<model::GptConfig>(model) || std::holds_alternative<model::MptConfig>(model);
  return body ? "transformer." : "";
}

}  // namespace

std::string stored_name(const model::Config& model, const model::Parameter& parameter) {
  if (parameter.name.starts_with("lm_head.")) return parameter.name;
  return std::string(prefix_of(model)).append(parameter.name);
}

bool is_stored_transposed(const model::Config& model, const model::Parameter& parameter) {
  const auto has = [&](std::string_view part) { return parameter.name.find(part) != std::string::npos; };
  return std::holds_alternative<model::GptConfig>(model) && parameter.shape.size() == 2 &&
         (has(".c_attn.") || has(".c_proj.") || has(".c_fc."));
}

}  // namespace foreshard::train
