#include <fmt/format.h>

#include <array>

#include "base/error.hpp"
#include "model/mpt.hpp"
#include "model/size_problems.hpp"

namespace foreshard::model {
namespace {

struct Preset {
  std::string_view name;
  MptConfig config;
};

/// Sizes as in the configurations published with the weights of MPT (MosaicML 2023, mpt-7b and mpt-30b). The byte
/// models are ours.
constexpr std::array<Preset, 4> presets = {{
    {"mpt-7b", {}},
    {"mpt-30b", {.layers = 48, .width = 7168, .heads = 64, .max_seq_len = 8192}},
    {"byte-mpt-tiny", {.layers = 2, .width = 64, .heads = 4, .vocab_size = 256, .max_seq_len = 256}},
    {"byte-mpt-small", {.layers = 4, .width = 128, .heads = 4, .vocab_size = 256, .max_seq_len = 256}},
}};

}  // namespace

std::vector<std::string_view> mpt_presets() {
  std::vector<std::string_view> names;
  for (const Preset& preset : presets) names.push_back(preset.name);
  return names;
}

MptConfig mpt_preset(std::string_view name) {
  for (const Preset& preset : presets)
    if (preset.name == name) return preset.config;
  throw ContractError(fmt::format("no MPT preset '{}'", name));
}

std::vector<std::string> problems(const MptConfig& c, const BatchShape& shape) {
  const Extents extents{c.layers, c.width, c.heads, c.vocab_size, c.max_seq_len};
  std::vector<std::string> found;
  check_extents(extents, shape, found);
  if (c.ffn_width < 0)
    found.push_back(fmt::format("model.ffn_width is {}, expected 0 (4 × width) or more", c.ffn_width));
  if (c.heads > 0 && c.width % c.heads != 0)
    found.push_back(fmt::format("model.heads is {}, which does not divide model.width {}; the remainder is {}", c.heads,
                                c.width, c.width % c.heads));
  if (!(c.alibi_max > 0))
    found.push_back(fmt::format("the largest exponent of ALiBi's slopes is {}, expected more than 0", c.alibi_max));
  check_elements(extents, c.ffn_width > 0 ? static_cast<double>(c.ffn_width) : 4 * static_cast<double>(c.width), shape,
                 found);
  return found;
}

}  // namespace foreshard::model
