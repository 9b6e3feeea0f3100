#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/presets.hpp"
#include "model/size_problems.hpp"
#include "model/t5.hpp"

namespace foreshard::model {
namespace {

/// Sizes as in the configurations published with the weights (Raffel et al. 2019, table 14, and T5 1.1).
constexpr std::array<Preset<T5Config>, 8> presets = {{
    {"byte-t5-small",
     {.layers = 4,
      .width = 192,
      .heads = 6,
      .vocab_size = 256,
      .max_seq_len = 128,
      .head_width = 32,
      .ffn_width = 768}},
    {"t5-small", {}},
    {"t5-base", {.layers = 12, .width = 768, .heads = 12, .ffn_width = 3072}},
    {"t5-large", {.layers = 24, .width = 1024, .heads = 16, .ffn_width = 4096}},
    {"t5-3b", {.layers = 24, .width = 1024, .heads = 32, .head_width = 128, .ffn_width = 16384}},
    {"t5-11b", {.layers = 24, .width = 1024, .heads = 128, .head_width = 128, .ffn_width = 65536}},
    {"t5-v1.1-xl",
     {.layers = 24,
      .width = 2048,
      .heads = 32,
      .ffn_width = 5120,
      .tied_head = false,
      .feed_forward = T5Config::FeedForward::gated_gelu}},
    {"t5-v1.1-xxl",
     {.layers = 24,
      .width = 4096,
      .heads = 64,
      .ffn_width = 10240,
      .tied_head = false,
      .feed_forward = T5Config::FeedForward::gated_gelu}},
}};

}  // namespace

std::vector<std::string_view> t5_presets() { return names_of(presets); }

T5Config t5_preset(std::string_view name) { return config_of(presets, name); }

std::vector<std::string> problems(const T5Config& c, const BatchShape& shape) {
  const Extents extents{std::max(c.layers, c.decoder_layers), c.width, c.heads, c.vocab_size,
                        std::max(c.max_seq_len, shape.seq)};
  std::vector<std::string> found;
  check_extents(extents, shape, found);
  check_positive("model.layers", c.layers, found);
  check_positive("model.ffn_width", c.ffn_width, found);
  check_positive("head_width", c.head_width, found);
  check_positive("buckets", c.buckets, found);
  if (c.buckets > 0 && (c.buckets < 4 || c.max_distance <= c.buckets / 2))
    found.push_back(
        fmt::format("{} buckets of relative positions up to {}: expected at least 4, and positions beyond {}",
                    c.buckets, c.max_distance, c.buckets / 2));
  const double attention = static_cast<double>(c.heads) * static_cast<double>(c.head_width);
  check_elements(extents, 2 * (4 * static_cast<double>(c.ffn_width) + 8 * attention), shape, found);
  return found;
}

}  // namespace foreshard::model
