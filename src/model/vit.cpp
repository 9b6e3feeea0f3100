#include "model/vit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "model/graph_builder.hpp"
#include "model/presets.hpp"
#include "model/size_problems.hpp"

namespace foreshard::model {
namespace {

constexpr double stddev = 0.02;  // initializer_range of Hugging Face's configuration

constexpr float reattention_epsilon = 1e-5F;  // torch.nn.LayerNorm's

constexpr std::array<Preset<VitConfig>, 7> presets = {{
    {"vit-cifar10",
     {.layers = 6, .width = 256, .heads = 4, .ffn_width = 1024, .patches = 64, .patch_values = 48, .classes = 10}},
    {"vit-b16", {}},
    {"vit-l16", {.layers = 24, .width = 1024, .heads = 16, .ffn_width = 4096}},
    {"vit-h14", {.layers = 32, .width = 1280, .heads = 16, .ffn_width = 5120, .patches = 256, .patch_values = 588}},
    {"deepvit-cifar10",
     {.layers = 6,
      .width = 256,
      .heads = 4,
      .ffn_width = 1024,
      .patches = 64,
      .patch_values = 48,
      .classes = 10,
      .reattention = true}},
    {"deepvit-16b", {.layers = 16, .width = 384, .ffn_width = 1152, .reattention = true}},
    {"deepvit-32b", {.layers = 32, .width = 384, .ffn_width = 1152, .reattention = true}},
}};

class VitBuilder : GraphBuilder {
 public:
  VitBuilder(const VitConfig& config, std::int64_t images, DType dtype)
      : GraphBuilder({images, config.tokens()}, dtype), c_(config) {
    one_target_a_sequence();
  }

  Graph build() {
    TensorId x = embeddings("embeddings");
    for (std::int64_t layer = 0; layer < c_.layers; ++layer) x = block(x, layer);
    return_to_root();
    x = first_token("layernorm", norm("layernorm", x));
    if (c_.classes > 0) x = linear("classifier", x, c_.width, c_.classes, true, stddev);
    cross_entropy(x, c_.classes > 0 ? c_.classes : c_.width);
    return take();
  }

 private:
  TensorId embeddings(const std::string& path) {
    const TensorId class_token = parameter(path + ".cls_token", {1, 1, c_.width}, {.stddev = stddev});
    const TensorId positions = parameter(path + ".position_embeddings", {1, c_.tokens(), c_.width}, {.stddev = stddev});
    const std::string projection = path + ".patch_embeddings.projection";
    const TensorId patches = linear(projection, images(projection), c_.patch_values, c_.width, true, stddev);
    const TensorId x = activation(rows() * c_.width);
    op(path, OpKind::image_tokens, {.rows = rows(), .cols = c_.width, .seq = c_.tokens()},
       {patches, class_token, positions}, {x});
    return x;
  }

  TensorId images(const std::string& path) {
    const std::int64_t patches = shape().batch * c_.patches;
    const TensorId x = activation(patches * c_.patch_values);
    op(path, OpKind::load_images, {.rows = patches, .cols = c_.patch_values}, {}, {x});
    return x;
  }

  TensorId block(TensorId x, std::int64_t layer) {
    begin_unit(fmt::format("u{}", layer));
    const std::string path = fmt::format("layers.{}", layer);
    x = add(path, x, self_attention(path + ".attention", norm(path + ".layernorm_before", x)));
    return add(path, x, feed_forward(path + ".mlp", norm(path + ".layernorm_after", x)));
  }

  TensorId self_attention(const std::string& path, TensorId x) {
    const TensorId q = linear(path + ".q_proj", x, c_.width, c_.width, c_.qkv_bias, stddev);
    const TensorId k = linear(path + ".k_proj", x, c_.width, c_.width, c_.qkv_bias, stddev);
    const TensorId v = linear(path + ".v_proj", x, c_.width, c_.width, c_.qkv_bias, stddev);
    const std::int64_t head = c_.width / c_.heads;
    const Sizes sizes{.rows = c_.tokens(),
                      .cols = c_.width,
                      .inner = head,
                      .batch = shape().batch,
                      .seq = c_.tokens(),
                      .heads = c_.heads};
    const TensorId y = c_.reattention ? reattention(path, sizes, {q, k, v})
                                      : attention(path, OpKind::full_attention, sizes, {q, k, v}, 1);
    return linear(path + ".o_proj", y, c_.width, c_.width, true, stddev);
  }

  TensorId reattention(const std::string& path, const Sizes& sizes, std::vector<TensorId> operands) {
    operands.push_back(parameter(path + ".reattn_weights", {c_.heads, c_.heads}, {.stddev = 1}));
    operands.push_back(parameter(path + ".reattn_norm.weight", {c_.heads}, {.constant = 1}));
    operands.push_back(parameter(path + ".reattn_norm.bias", {c_.heads}, {}));
    return attention(path, OpKind::reattention, sizes, std::move(operands), reattention_epsilon);
  }

  TensorId feed_forward(const std::string& path, TensorId x) {
    const OpKind kind = c_.exact_gelu ? OpKind::gelu_exact : OpKind::gelu;
    const TensorId inner = linear(path + ".fc1", x, c_.width, c_.ffn_width, true, stddev);
    return linear(path + ".fc2", elementwise(path, kind, c_.ffn_width, {inner}), c_.ffn_width, c_.width, true, stddev);
  }

  TensorId first_token(const std::string& path, TensorId x) {
    const TensorId y = activation(shape().batch * c_.width);
    op(path, OpKind::first_token, {.rows = shape().batch, .cols = c_.width, .seq = c_.tokens()}, {x}, {y});
    return y;
  }

  TensorId norm(const std::string& name, TensorId x) { return layer_norm(name, x, c_.width, c_.norm_epsilon); }

  const VitConfig& c_;
};

}  // namespace

std::vector<std::string_view> vit_presets() { return names_of(presets); }

VitConfig vit_preset(std::string_view name) { return config_of(presets, name); }

std::vector<std::string> problems(const VitConfig& c, const BatchShape& shape) {
  const Extents extents{c.layers, c.width, c.heads, std::max(c.classes, std::int64_t{1}), c.tokens()};
  std::vector<std::string> found;
  check_extents(extents, {shape.batch, 1}, found);
  check_positive("model.ffn_width", c.ffn_width, found);
  check_positive("patches of an image", c.patches, found);
  check_positive("values of a patch", c.patch_values, found);
  check_head_division(c.width, c.heads, found);
  if (c.reattention && c.heads == 1)
    found.emplace_back("model.heads is 1, expected 2 or more: re-attention normalises over the heads");
  check_elements(extents, static_cast<double>(c.ffn_width) + static_cast<double>(c.patch_values),
                 {shape.batch, c.tokens()}, found);
  return found;
}

Graph build_vit(const VitConfig& config, const BatchShape& shape, DType dtype) {
  FORESHARD_EXPECT(problems(config, shape).empty(), problems(config, shape).front());
  return VitBuilder(config, shape.batch, dtype).build();
}

}  // namespace foreshard::model
