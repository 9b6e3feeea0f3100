#include <fmt/format.h>

#include <array>

#include "base/error.hpp"
#include "model/gpt.hpp"
#include "model/size_problems.hpp"

namespace foreshard::model {
namespace {

struct Preset {
  std::string_view name;
  GptConfig config;
};

/// GPT-2 sizes: Radford et al. 2019 and the configurations published with the weights. The byte models are ours.
constexpr std::array<Preset, 7> presets = {{
    {"gpt2", {.layers = 12, .width = 768, .heads = 12}},
    {"gpt2-medium", {.layers = 24, .width = 1024, .heads = 16}},
    {"gpt2-large", {.layers = 36, .width = 1280, .heads = 20}},
    {"gpt2-xl", {.layers = 48, .width = 1600, .heads = 25}},
    {"byte-tiny", {.layers = 2, .width = 64, .heads = 4, .vocab_size = 256, .max_seq_len = 256}},
    {"byte-small", {.layers = 4, .width = 128, .heads = 4, .vocab_size = 256, .max_seq_len = 256}},
    {"byte-medium", {.layers = 6, .width = 256, .heads = 8, .vocab_size = 256, .max_seq_len = 512}},
}};

}  // namespace

std::vector<std::string_view> gpt_presets() {
  std::vector<std::string_view> names;
  for (const Preset& preset : presets) names.push_back(preset.name);
  return names;
}

GptConfig gpt_preset(std::string_view name) {
  for (const Preset& preset : presets)
    if (preset.name == name) return preset.config;
  throw ContractError(fmt::format("no GPT preset '{}'", name));
}

std::vector<std::string> problems(const GptConfig& c, const BatchShape& shape) {
  const Extents extents{c.layers, c.width, c.heads, c.vocab_size, c.max_seq_len};
  std::vector<std::string> found;
  check_extents(extents, shape, found);
  if (c.ffn_width < 0)
    found.push_back(fmt::format("model.ffn_width is {}, expected 0 (4 × width) or more", c.ffn_width));
  check_head_division(c.width, c.heads, found);
  if (!(c.dropout >= 0 && c.dropout < 1))
    found.push_back(fmt::format("model.dropout is {}, expected 0 up to but not including 1", c.dropout));
  check_elements(extents, c.ffn_width > 0 ? static_cast<double>(c.ffn_width) : 4 * static_cast<double>(c.width), shape,
                 found);
  return found;
}

}  // namespace foreshard::model
