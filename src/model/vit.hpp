#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "model/batch_shape.hpp"
#include "model/graph.hpp"

namespace foreshard::model {

/// A vision transformer that classifies images (Dosovitskiy et al. 2020, arXiv 2010.11929): patches through one matrix,
/// a class token before them, learned positions, pre-LayerNorm encoder blocks, a linear head on the class token. A
/// sequence is an image, its tokens are its patches and the class token.
///
/// DeepViT (Zhou et al. 2021, arXiv 2103.11886) is the same with re-attention in place of attention: each head's
/// probabilities are mixed with the others' by a learned matrix and normalised over heads before they meet the values
/// (OpKind::reattention), as `vit_pytorch.deepvit` computes it. All else is Hugging Face's ViT, where that module has
/// no biases of queries, keys and values, heads of any width, norms with epsilon 1e-5 and larger initial values; both
/// read the class token and normalise before each half of a block.
struct VitConfig {
  std::int64_t layers = 12, width = 768, heads = 12;
  std::int64_t ffn_width = 3072;
  std::int64_t patches = 196;       ///< of an image
  std::int64_t patch_values = 768;  ///< of one: channels × height × width
  std::int64_t classes = 1000;      ///< 0: no head, the loss is on the class token itself
  bool qkv_bias = true;
  bool exact_gelu = true;  ///< else its tanh form
  double norm_epsilon = 1e-12;
  bool reattention = false;  ///< DeepViT; its norm over heads has PyTorch's epsilon, 1e-5
  std::int64_t tokens() const { return patches < INT64_MAX ? patches + 1 : patches; }
};

/// Names that `vit_preset` knows: vit-b16, vit-l16, vit-h14, with 1000 classes; vit-cifar10, small, with patches of 4·4
/// pixels; deepvit-cifar10, as small; deepvit-16b and deepvit-32b, which are named by their blocks: width, heads and
/// feed-forward as in its authors' code (deepvit_patch16_224_re_attn_16b, _32b).
std::vector<std::string_view> vit_presets();
VitConfig vit_preset(std::string_view name);

/// Everything wrong with a configuration, one sentence each; empty when it can be built.
std::vector<std::string> problems(const VitConfig& config, const BatchShape& shape);

/// The forward graph: unit 0 (root) holds embeddings, final norm and head, unit i + 1 the i-th block. Of `shape` only
/// the batch counts: the tokens of an image are the model's. Names are those of Hugging Face's ViT without its "vit.",
/// and beside them reattn_weights and reattn_norm of an attention, which vit_pytorch draws from the unit normal
/// distribution and begins with ones and zeros.
Graph build_vit(const VitConfig& config, const BatchShape& shape, DType dtype = DType::f32);

}  // namespace foreshard::model
