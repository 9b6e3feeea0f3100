#include "model/llama.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/graph_builder.hpp"

namespace foreshard::model {
namespace {

constexpr double stddev = 0.02;  // initializer_range of Hugging Face's configurations

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
    x = rms_norm("norm", x);
    loss(x, head_weight(), c_.width, c_.vocab_size);
    return take();
  }

 private:
  TensorId block(TensorId x, std::int64_t layer) {
    begin_unit(fmt::format("u{}", layer));
    const std::string path = fmt::format("layers.{}", layer);
    x = add(path, x, self_attention(path + ".self_attn", rms_norm(path + ".input_layernorm", x)));
    return add(path, x, feed_forward(path + ".mlp", rms_norm(path + ".post_attention_layernorm", x)));
  }

  TensorId self_attention(const std::string& path, TensorId x) {
    const TensorId q = linear(path + ".q_proj", x, c_.width, query_width_, c_.qkv_bias, stddev);
    const TensorId k = linear(path + ".k_proj", x, c_.width, key_width_, c_.qkv_bias, stddev);
    const TensorId v = linear(path + ".v_proj", x, c_.width, key_width_, c_.qkv_bias, stddev);
    const TensorId mixed = attention(path, rotary(path, q, query_width_), rotary(path, k, key_width_), v);
    return linear(path + ".o_proj", mixed, query_width_, c_.width, c_.output_bias, stddev);
  }

  TensorId feed_forward(const std::string& path, TensorId x) {
    const TensorId gate = linear(path + ".gate_proj", x, c_.width, c_.ffn_width, c_.ffn_bias, stddev);
    const TensorId up = linear(path + ".up_proj", x, c_.width, c_.ffn_width, c_.ffn_bias, stddev);
    const TensorId hidden = activation(rows() * c_.ffn_width);
    op(path, OpKind::swiglu, {.rows = rows(), .cols = c_.ffn_width}, {gate, up}, {hidden});
    return linear(path + ".down_proj", hidden, c_.ffn_width, c_.width, c_.ffn_bias, stddev);
  }

  TensorId rms_norm(const std::string& name, TensorId x) {
    const TensorId gain = parameter(name + ".weight", {c_.width}, {.constant = 1});
    const TensorId y = activation(rows() * c_.width), rstd = activation(rows());
    op(name, OpKind::rms_norm, {.rows = rows(), .cols = c_.width}, {x, gain}, {y, rstd},
       static_cast<float>(c_.norm_epsilon));
    return y;
  }

  TensorId rotary(const std::string& path, TensorId x, std::int64_t width) {
    const TensorId y = activation(rows() * width);
    op(path, OpKind::rotary, {.rows = rows(), .cols = width, .inner = head_width_, .seq = shape().seq}, {x}, {y},
       static_cast<float>(c_.rope_theta));
    return y;
  }

  TensorId attention(const std::string& path, TensorId q, TensorId k, TensorId v) {
    const TensorId y = activation(rows() * query_width_), log_sum_exp = activation(rows() * c_.heads);
    op(path, OpKind::attention,
       {.cols = key_width_, .inner = head_width_, .batch = shape().batch, .seq = shape().seq, .heads = c_.heads},
       {q, k, v}, {y, log_sum_exp});
    return y;
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
