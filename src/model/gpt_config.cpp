#include <fmt/format.h>

#include <array>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/gpt.hpp"

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
  const auto names = gpt_presets();
  const std::string near = nearest(name, names);
  throw InputError(ExitCode::usage,
                   fmt::format("model.preset: no preset '{}'{}; known: {}", name,
                               near.empty() ? "" : fmt::format(", did you mean '{}'?", near), fmt::join(names, ", ")));
}

namespace {

/// Far beyond any model, and far below where sizes in bytes would leave 64 bits.
constexpr std::int64_t most_layers = 4096;
constexpr double most_elements = 0x1p50;

/// Parameters and what one micro-batch keeps for backward, about; in double, which cannot overflow.
double about_elements(const GptConfig& c, const BatchShape& shape) {
  const auto layers = static_cast<double>(c.layers), width = static_cast<double>(c.width);
  const double ffn = c.ffn_width > 0 ? static_cast<double>(c.ffn_width) : 4 * width;
  const double vocab = static_cast<double>(c.vocab_size), positions = static_cast<double>(c.max_seq_len);
  const double rows = static_cast<double>(shape.batch) * static_cast<double>(shape.seq);
  const double parameters = layers * (4 * width * width + 2 * width * ffn) + (2 * vocab + positions) * width;
  return parameters + rows * (layers * (10 * width + 2 * ffn + static_cast<double>(c.heads)) + 2 * vocab);
}

void check_size(const GptConfig& c, const BatchShape& shape, std::vector<std::string>& found) {
  if (c.layers > most_layers)
    found.push_back(fmt::format("model.layers is {}, expected at most {}", c.layers, most_layers));
  const double elements = about_elements(c, shape);
  if (elements > most_elements)
    found.push_back(
        fmt::format("the model and a micro-batch of {} sequences of {} tokens would have about {:.3g} numbers, "
                    "expected at most {:.3g}; look at model.* and train.local_batch_size",
                    shape.batch, shape.seq, elements, most_elements));
}

}  // namespace

std::vector<std::string> problems(const GptConfig& c, const BatchShape& shape) {
  std::vector<std::string> found;
  const auto positive = [&](std::string_view key, std::int64_t value) {
    if (value < 1) found.push_back(fmt::format("{} is {}, expected at least 1", key, value));
  };
  positive("model.layers", c.layers);
  positive("model.width", c.width);
  positive("model.heads", c.heads);
  positive("model.vocab_size", c.vocab_size);
  positive("model.max_seq_len", c.max_seq_len);
  positive("train.seq_len", shape.seq);
  positive("train.local_batch_size", shape.batch);
  if (c.ffn_width < 0)
    found.push_back(fmt::format("model.ffn_width is {}, expected 0 (4 × width) or more", c.ffn_width));
  if (c.heads > 0 && c.width % c.heads != 0)
    found.push_back(fmt::format(
        "model.heads is {}, which does not divide model.width {}; heads of {} would be {} wide, the remainder is {}",
        c.heads, c.width, c.heads, c.width / c.heads, c.width % c.heads));
  if (shape.seq > c.max_seq_len)
    found.push_back(fmt::format("train.seq_len is {}, but the model has {} positions (model.max_seq_len)", shape.seq,
                                c.max_seq_len));
  if (!(c.dropout >= 0 && c.dropout < 1))
    found.push_back(fmt::format("model.dropout is {}, expected 0 up to but not including 1", c.dropout));
  check_size(c, shape, found);
  return found;
}

}  // namespace foreshard::model
