#include "model/gpt.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"
#include "model/graph_builder.hpp"

namespace foreshard::model {
namespace {

class GptBuilder : GraphBuilder {
 public:
  GptBuilder(const GptConfig& config, const BatchShape& shape, DType dtype)
      : GraphBuilder(shape, dtype), c_(config), ffn_(config.inner_width()) {}

  Graph build() {
    token_table_ = parameter("wte.weight", {c_.vocab_size, c_.width}, {.stddev = 0.02});
    const TensorId positions = parameter("wpe.weight", {c_.max_seq_len, c_.width}, {.stddev = 0.02});
    TensorId x = dropout("drop", embedding("wte", token_table_, positions, c_.vocab_size, c_.width));
    for (std::int64_t layer = 0; layer < c_.layers; ++layer) x = block(x, layer);
    return_to_root();
    x = norm("ln_f", x);
    loss(x, head_weight(), c_.width, c_.vocab_size);
    return take();
  }

 private:
  TensorId block(TensorId x, std::int64_t layer) {
    begin_unit(fmt::format("u{}", layer));
    const std::string path = fmt::format("h.{}", layer), attn = path + ".attn", mlp = path + ".mlp";
    const double residual_stddev = 0.02 / std::sqrt(2.0 * static_cast<double>(c_.layers));
    const TensorId qkv = linear(attn + ".c_attn", norm(path + ".ln_1", x), c_.width, 3 * c_.width, true, 0.02);
    const TensorId attended = linear(attn + ".c_proj", attend(attn, qkv), c_.width, c_.width, true, residual_stddev);
    x = add(path, x, dropout(attn, attended));
    const TensorId hidden = linear(mlp + ".c_fc", norm(path + ".ln_2", x), c_.width, ffn_, true, 0.02);
    const TensorId active = elementwise(mlp, OpKind::gelu, ffn_, {hidden});
    return add(path, x, dropout(mlp, linear(mlp + ".c_proj", active, ffn_, c_.width, true, residual_stddev)));
  }

  TensorId norm(const std::string& name, TensorId x) { return layer_norm(name, x, c_.width, c_.norm_epsilon); }

  TensorId attend(const std::string& path, TensorId qkv) {
    return attention(path, OpKind::attention,
                     {.inner = c_.width / c_.heads, .batch = shape().batch, .seq = shape().seq, .heads = c_.heads},
                     {qkv});
  }

  TensorId dropout(const std::string& path, TensorId x) {
    if (c_.dropout == 0) return x;
    const TensorId y = activation(rows() * c_.width);
    op(path, OpKind::dropout, {.rows = rows(), .cols = c_.width}, {x}, {y}, static_cast<float>(c_.dropout)).stream =
        dropouts_++;
    return y;
  }

  TensorId head_weight() {
    return c_.tied_head ? token_table_ : parameter("lm_head.weight", {c_.vocab_size, c_.width}, {.stddev = 0.02});
  }

  const GptConfig& c_;
  std::int64_t ffn_;
  TensorId token_table_;
  std::uint32_t dropouts_ = 0;
};

}  // namespace

Graph build_gpt(const GptConfig& config, const BatchShape& shape, DType dtype) {
  FORESHARD_EXPECT(problems(config, shape).empty(), problems(config, shape).front());
  return GptBuilder(config, shape, dtype).build();
}

}  // namespace foreshard::model
