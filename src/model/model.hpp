#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/gpt.hpp"
#include "model/llama.hpp"
#include "model/mpt.hpp"
#include "model/profile.hpp"
#include "model/t5.hpp"
#include "model/vit.hpp"

/// The families side by side. Whoever is not about one family asks here, so that a new one is a change of this file.
namespace foreshard::model {

/// A model of any family.
using Config = std::variant<GptConfig, LlamaConfig, MptConfig, T5Config, VitConfig, ProfileConfig>;

/// Names that `preset` knows, of all families.
std::vector<std::string_view> presets();

/// The configuration of a preset. Throws InputError, with the nearest name, for one that does not exist.
Config preset(std::string_view name);

/// What users call the family: "gpt", "llama", "mpt", "t5", "vit", "deepvit" or "profile".
std::string_view family_of(const Config& config);

/// Everything wrong with a configuration, one sentence each; empty when it can be built.
std::vector<std::string> problems_of(const Config& config, const BatchShape& shape);

/// The forward graph of one micro-batch. Unit 0 is the root, unit i + 1 the i-th block.
Graph build(const Config& config, const BatchShape& shape, DType dtype = DType::f32);

/// The sizes that every family has. Layers of encoder and decoder count together; of a model of images, the vocabulary
/// are its classes, and the longest sequence is an image.
struct Dimensions {
  std::int64_t layers, width, heads, vocab_size, max_seq_len;
  std::int64_t attention_width;  ///< heads × the width of a head
};
Dimensions dimensions(const Config& config);

/// Names and values that decide the shapes of the parameters, as users' keys call them, without "model.".
std::vector<std::pair<std::string_view, std::variant<bool, std::int64_t>>> layout_facts(const Config& config);

/// Model FLOPs of a token in forward and backward, 6·parameters + 12·layers·attention width·seq: Chowdhery et al. 2022
/// (PaLM), appendix B, with the window for seq in layers that have a shorter one. Recomputation and the causal mask do
/// not count.
double model_flops_per_token(const Config& config, std::int64_t parameters, std::int64_t seq);

}  // namespace foreshard::model
