#include "model/t5.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"
#include "model/graph_builder.hpp"

namespace foreshard::model {
namespace {

/// Deviations as in Hugging Face's initialisation.
double stddev_of(std::int64_t in) { return 1 / std::sqrt(static_cast<double>(in)); }

class T5Builder : GraphBuilder {
 public:
  T5Builder(const T5Config& config, const BatchShape& shape, DType dtype)
      : GraphBuilder(shape, dtype), c_(config), inner_(c_.heads * c_.head_width) {}

  Graph build() {
    table_ = parameter("shared.weight", {c_.vocab_size, c_.width}, {.stddev = 1});
    const TensorId encoded = stack("encoder", c_.layers, TensorId::none());
    const TensorId decoded = stack("decoder", c_.layers_of_decoder(), encoded);
    loss(c_.tied_head ? elementwise("lm_head", OpKind::scale, c_.width, {decoded}) : decoded, head_weight(), c_.width,
         c_.vocab_size);
    return take();
  }

 private:
  /// Blocks between the token table and a norm; a decoder's attend to what was encoded.
  TensorId stack(const std::string& name, std::int64_t layers, TensorId encoded) {
    TensorId x = embed(name + ".embed_tokens", encoded.valid());
    bias_ = TensorId::none();
    for (std::int64_t layer = 0; layer < layers; ++layer)
      x = block(fmt::format("{}.block.{}.layer.", name, layer), x, encoded);
    return_to_root();
    return norm(name + ".final_layer_norm", x);
  }

  TensorId embed(const std::string& path, bool decodes) {
    const TensorId x = activation(rows() * c_.width);
    op(path, OpKind::embedding, {.rows = rows(), .cols = c_.width, .inner = c_.vocab_size, .seq = shape().seq},
       {decodes ? targets() : tokens(), table_, TensorId::none()}, {x}, decodes ? 1 : 0);
    return x;
  }

  TensorId block(const std::string& layer, TensorId x, TensorId encoded) {
    begin_unit(fmt::format("u{}", blocks_++));
    const bool decodes = encoded.valid();
    if (!bias_.valid()) bias_ = relative_bias(layer + "0.SelfAttention", !decodes);
    const OpKind kind = decodes ? OpKind::attention : OpKind::full_attention;
    x = attend(layer + "0", ".SelfAttention", kind, x, TensorId::none());
    if (decodes) x = attend(layer + "1", ".EncDecAttention", OpKind::full_attention, x, encoded);
    return feed_forward(layer + (decodes ? "2" : "1"), x);
  }

  /// One value for each distance and head, which all blocks of a stack use.
  TensorId relative_bias(const std::string& path, bool both_ways) {
    const TensorId table =
        parameter(path + ".relative_attention_bias.weight", {c_.buckets, c_.heads}, {.stddev = stddev_of(c_.width)});
    const std::int64_t distances = 2 * shape().seq - 1;
    const TensorId bias = activation(c_.heads * distances);
    op(path + ".relative_attention_bias", OpKind::relative_bias,
       {.rows = distances, .cols = c_.heads, .inner = c_.buckets, .seq = c_.max_distance}, {table}, {bias},
       both_ways ? 1 : 0);
    return bias;
  }

  /// x + attention of its norm to itself, or to `other`.
  TensorId attend(const std::string& path, const std::string& name, OpKind kind, TensorId x, TensorId other) {
    const TensorId normed = norm(path + ".layer_norm", x), memory = other.valid() ? other : normed;
    const std::string module = path + name;
    const TensorId q = linear(module + ".q", normed, c_.width, inner_, false, stddev_of(c_.width * c_.head_width));
    const TensorId k = project(module + ".k", memory, c_.width, inner_);
    const TensorId v = project(module + ".v", memory, c_.width, inner_);
    std::vector<TensorId> operands{q, k, v};
    if (!other.valid()) operands.push_back(bias_);
    const TensorId mixed = attention(module, kind, sizes_of(kind), std::move(operands));
    return add(path, x, project(module + ".o", mixed, inner_, c_.width));
  }

  Sizes sizes_of(OpKind kind) const {
    Sizes sizes{.cols = inner_, .inner = c_.head_width, .batch = shape().batch, .seq = shape().seq, .heads = c_.heads};
    if (kind == OpKind::full_attention) sizes.rows = shape().seq;
    return sizes;
  }

  TensorId feed_forward(const std::string& path, TensorId x) {
    const std::string module = path + ".DenseReluDense";
    const TensorId hidden = activate(module, norm(path + ".layer_norm", x));
    return add(path, x, project(module + ".wo", hidden, c_.ffn_width, c_.width));
  }

  TensorId activate(const std::string& module, TensorId x) {
    if (c_.feed_forward == T5Config::FeedForward::relu)
      return elementwise(module, OpKind::relu, c_.ffn_width, {project(module + ".wi", x, c_.width, c_.ffn_width)});
    const OpKind kind = c_.feed_forward == T5Config::FeedForward::gated_gelu ? OpKind::geglu : OpKind::swiglu;
    const TensorId gate = project(module + ".wi_0", x, c_.width, c_.ffn_width);
    const TensorId up = project(module + ".wi_1", x, c_.width, c_.ffn_width);
    return elementwise(module, kind, c_.ffn_width, {gate, up});
  }

  TensorId project(const std::string& name, TensorId x, std::int64_t in, std::int64_t out) {
    return linear(name, x, in, out, false, stddev_of(in));
  }

  TensorId norm(const std::string& name, TensorId x) { return rms_norm(name, x, c_.width, c_.norm_epsilon); }

  TensorId head_weight() {
    return c_.tied_head ? table_ : parameter("lm_head.weight", {c_.vocab_size, c_.width}, {.stddev = 1});
  }

  const T5Config& c_;
  std::int64_t inner_, blocks_ = 0;
  TensorId table_, bias_;
};

}  // namespace

Graph build_t5(const T5Config& config, const BatchShape& shape, DType dtype) {
  FORESHARD_EXPECT(problems(config, shape).empty(), problems(config, shape).front());
  return T5Builder(config, shape, dtype).build();
}

}  // namespace foreshard::model
