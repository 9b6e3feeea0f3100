#include <fmt/format.h>

#include <array>

#include "model/gpt.hpp"
#include "model/presets.hpp"
#include "model/size_problems.hpp"

namespace foreshard::model {
namespace {

/// GPT-2 sizes: Radford et al. 2019 and the configurations published with the weights. The byte models are ours.
constexpr std::array<Preset<GptConfig>, 7> presets = {{
    {"gpt2", {.layers = 12, .width = 768, .heads = 12}},
    {"gpt2-medium", {.layers = 24, .width = 1024, .heads = 16}},
    {"gpt2-large", {.layers = 36, .width = 1280, .heads = 20}},
    {"gpt2-xl", {.layers = 48, .width = 1600, .heads = 25}},
    {"byte-tiny", {.layers = 2, .width = 64, .heads = 4, .vocab_size = 256, .max_seq_len = 256}},
    {"byte-small", {.layers = 4, .width = 128, .heads = 4, .vocab_size = 256, .max_seq_len = 256}},
    {"byte-medium", {.layers = 6, .width = 256, .heads = 8, .vocab_size = 256, .max_seq_len = 512}},
}};

}  // namespace

std::vector<std::string_view> gpt_presets() { return names_of(presets); }

GptConfig gpt_preset(std::string_view name) { return config_of(presets, name); }

std::vector<std::string> problems(const GptConfig& c, const BatchShape& shape) {
  const Extents extents{c.layers, c.width, c.heads, c.vocab_size, c.max_seq_len};
  std::vector<std::string> found;
  check_extents(extents, shape, found);
  const double ffn = check_inner_width(c.width, c.ffn_width, found);
  check_head_division(c.width, c.heads, found);
  if (!(c.dropout >= 0 && c.dropout < 1))
    found.push_back(fmt::format("model.dropout is {}, expected 0 up to but not including 1", c.dropout));
  check_elements(extents, ffn, shape, found);
  return found;
}

}  // namespace foreshard::model
