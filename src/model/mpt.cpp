#include "model/mpt.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/graph_builder.hpp"

namespace foreshard::model {
namespace {

constexpr double stddev = 0.02;  // initializer_range of Hugging Face's configuration

class MptBuilder : GraphBuilder {
 public:
  MptBuilder(const MptConfig& config, const BatchShape& shape, DType dtype)
      : GraphBuilder(shape, dtype), c_(config), ffn_(config.ffn_width > 0 ? config.ffn_width : 4 * config.width) {}

  Graph build() {
    token_table_ = parameter("wte.weight", {c_.vocab_size, c_.width}, {.stddev = stddev});
    TensorId x = embedding("wte", token_table_, TensorId::none(), c_.vocab_size, c_.width);
    for (std::int64_t layer = 0; layer < c_.layers; ++layer) x = block(x, layer);
    return_to_root();
    x = layer_norm("norm_f", x);
    loss(x, head_weight(), c_.width, c_.vocab_size);
    return take();
  }

 private:
  TensorId block(TensorId x, std::int64_t layer) {
    begin_unit(fmt::format("u{}", layer));
    const std::string path = fmt::format("blocks.{}", layer), attn = path + ".attn", ffn = path + ".ffn";
    const TensorId qkv = linear(attn + ".Wqkv", layer_norm(path + ".norm_1", x), c_.width, 3 * c_.width, false, stddev);
    x = add(path, x, linear(attn + ".out_proj", attention(attn, qkv), c_.width, c_.width, false, stddev));
    const TensorId up = linear(ffn + ".up_proj", layer_norm(path + ".norm_2", x), c_.width, ffn_, false, stddev);
    return add(path, x, linear(ffn + ".down_proj", gelu(ffn, up), ffn_, c_.width, false, stddev));
  }

  TensorId layer_norm(const std::string& name, TensorId x) {
    const TensorId gain = parameter(name + ".weight", {c_.width}, {.constant = 1});
    const TensorId y = activation(rows() * c_.width), mean = activation(rows()), rstd = activation(rows());
    op(name, OpKind::layer_norm, {.rows = rows(), .cols = c_.width}, {x, gain, TensorId::none()}, {y, mean, rstd},
       static_cast<float>(c_.norm_epsilon));
    return y;
  }

  TensorId attention(const std::string& path, TensorId qkv) {
    const TensorId y = activation(rows() * c_.width), log_sum_exp = activation(rows() * c_.heads);
    op(path, OpKind::attention,
       {.inner = c_.width / c_.heads, .batch = shape().batch, .seq = shape().seq, .heads = c_.heads}, {qkv},
       {y, log_sum_exp}, static_cast<float>(c_.alibi_max));
    return y;
  }

  TensorId gelu(const std::string& path, TensorId x) {
    const TensorId y = activation(rows() * ffn_);
    op(path, OpKind::gelu_exact, {.rows = rows(), .cols = ffn_}, {x}, {y});
    return y;
  }

  TensorId head_weight() {
    return c_.tied_head ? token_table_ : parameter("lm_head.weight", {c_.vocab_size, c_.width}, {.stddev = stddev});
  }

  const MptConfig& c_;
  std::int64_t ffn_;
  TensorId token_table_;
};

}  // namespace

Graph build_mpt(const MptConfig& config, const BatchShape& shape, DType dtype) {
  FORESHARD_EXPECT(problems(config, shape).empty(), problems(config, shape).front());
  return MptBuilder(config, shape, dtype).build();
}

}  // namespace foreshard::model
