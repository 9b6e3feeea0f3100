#include "model/llama.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"
#include "model/graph_builder.hpp"

namespace foreshard::model {
namespace {

constexpr double stddev = 0.02;  // initializer_range of Hugging Face's configurations

/// Weights of blocks' projections are their only frozen matrices.
Graph with_lora_alone_trained(Graph graph, Packing base) {
  for (Parameter& parameter : graph.parameters) {
    parameter.trainable = parameter.name.find(".lora_") != std::string::npos;
    const bool projects = !parameter.trainable && parameter.unit != root_unit && parameter.shape.size() == 2;
    if (projects) parameter.packing = base;
  }
  return graph;
}

class LlamaBuilder : GraphBuilder {
 public:
  LlamaBuilder(const LlamaConfig& config, const BatchShape& shape, DType dtype)
      : GraphBuilder(shape, dtype),
        c_(config),
        head_width_(c_.width_of_head()),
        query_width_(c_.heads * head_width_),
        key_width_(c_.key_heads() * head_width_) {}

  Graph build() {
    token_table_ = parameter("embed_tokens.weight", {c_.vocab_size, c_.width}, {.stddev = stddev});
    TensorId x = embedding("embed_tokens", token_table_, TensorId::none(), c_.vocab_size, c_.width);
    for (std::int64_t layer = 0; layer < c_.layers; ++layer) x = block(x, layer);
    return_to_root();
    x = norm("norm", x);
    loss(x, head_weight(), c_.width, c_.vocab_size);
    return c_.lora.rank > 0 ? with_lora_alone_trained(take(), c_.lora.base) : take();
  }

 private:
  TensorId block(TensorId x, std::int64_t layer) {
    begin_unit(fmt::format("u{}", layer));
    const std::string path = fmt::format("layers.{}", layer);
    x = add(path, x, self_attention(path + ".self_attn", layer, norm(path + ".input_layernorm", x)));
    return add(path, x, feed_forward(path + ".mlp", norm(path + ".post_attention_layernorm", x)));
  }

  TensorId self_attention(const std::string& path, std::int64_t layer, TensorId x) {
    const TensorId q = project(path, Projection::q, x, c_.width, query_width_, c_.qkv_bias);
    const TensorId k = project(path, Projection::k, x, c_.width, key_width_, c_.qkv_bias);
    const TensorId v = project(path, Projection::v, x, c_.width, key_width_, c_.qkv_bias);
    const TensorId mixed =
        attend(path, c_.window_of(layer, shape().seq), rotary(path, q, query_width_), rotary(path, k, key_width_), v);
    return project(path, Projection::o, mixed, query_width_, c_.width, c_.output_bias);
  }

  TensorId feed_forward(const std::string& path, TensorId x) {
    const TensorId gate = project(path, Projection::gate, x, c_.width, c_.ffn_width, c_.ffn_bias);
    const TensorId up = project(path, Projection::up, x, c_.width, c_.ffn_width, c_.ffn_bias);
    const TensorId hidden = elementwise(path, OpKind::swiglu, c_.ffn_width, {gate, up});
    return project(path, Projection::down, hidden, c_.ffn_width, c_.width, c_.ffn_bias);
  }

  TensorId project(const std::string& path, Projection projection, TensorId x, std::int64_t in, std::int64_t out,
                   bool bias) {
    const std::string name = fmt::format("{}.{}", path, projection_names[static_cast<std::size_t>(projection)]);
    const TensorId y = linear(name, x, in, out, bias, stddev);
    if (!c_.lora.adapts(projection)) return y;
    const double stddev_of_a = 1 / std::sqrt(3.0 * static_cast<double>(in));  // peft's, with a = √5
    const TensorId low = linear(name + ".lora_A", x, in, c_.lora.rank, false, stddev_of_a);
    return add(name, y, linear(name + ".lora_B", low, c_.lora.rank, out, false, 0));
  }

  TensorId norm(const std::string& name, TensorId x) { return rms_norm(name, x, c_.width, c_.norm_epsilon); }

  TensorId rotary(const std::string& path, TensorId x, std::int64_t width) {
    const TensorId y = activation(rows() * width);
    op(path, OpKind::rotary, {.rows = rows(), .cols = width, .inner = head_width_, .seq = shape().seq}, {x}, {y},
       static_cast<float>(c_.rope_theta));
    return y;
  }

  TensorId attend(const std::string& path, std::int64_t window, TensorId q, TensorId k, TensorId v) {
    return attention(path, OpKind::attention,
                     {.rows = window,
                      .cols = key_width_,
                      .inner = head_width_,
                      .batch = shape().batch,
                      .seq = shape().seq,
                      .heads = c_.heads},
                     {q, k, v});
  }

  TensorId head_weight() {
    return c_.tied_head ? token_table_ : parameter("lm_head.weight", {c_.vocab_size, c_.width}, {.stddev = stddev});
  }

  const LlamaConfig& c_;
  std::int64_t head_width_, query_width_, key_width_;
  TensorId token_table_;
};

}  // namespace

Graph build_llama(const LlamaConfig& config, const BatchShape& shape, DType dtype) {
  FORESHARD_EXPECT(problems(config, shape).empty(), problems(config, shape).front());
  return LlamaBuilder(config, shape, dtype).build();
}

}  // namespace foreshard::model
