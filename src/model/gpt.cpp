#include "model/gpt.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"

namespace foreshard::model {
namespace {

constexpr float layer_norm_epsilon = 1e-5F;  // GPT-2's

/// Builds the graph operator by operator; `unit` is the unit that what is added belongs to.
class GptBuilder {
 public:
  GptBuilder(const GptConfig& config, const BatchShape& shape, DType dtype)
      : c_(config),
        rows_(shape.batch * shape.seq),
        shape_(shape),
        dtype_(dtype),
        ffn_(config.ffn_width > 0 ? config.ffn_width : 4 * config.width) {}

  Graph build() {
    graph_.batch = shape_.batch;
    graph_.seq = shape_.seq;
    graph_.dtype = dtype_;
    graph_.tokens = input();
    graph_.targets = input();
    unit_ = add_unit("root");
    token_table_ = parameter("wte.weight", {c_.vocab_size, c_.width}, {.stddev = 0.02});
    TensorId x = dropout("drop", embedding());
    for (std::int64_t layer = 0; layer < c_.layers; ++layer) x = block(x, layer);
    unit_ = root_unit;
    head(layer_norm("ln_f", x));
    return std::move(graph_);
  }

 private:
  TensorId block(TensorId x, std::int64_t layer) {
    unit_ = add_unit(fmt::format("u{}", layer));
    const std::string path = fmt::format("h.{}", layer), attn = path + ".attn", mlp = path + ".mlp";
    const double residual_stddev = 0.02 / std::sqrt(2.0 * static_cast<double>(c_.layers));
    const TensorId qkv = linear(attn + ".c_attn", layer_norm(path + ".ln_1", x), c_.width, 3 * c_.width, 0.02);
    const TensorId attended = linear(attn + ".c_proj", attention(attn, qkv), c_.width, c_.width, residual_stddev);
    x = add(path, x, dropout(attn, attended));
    const TensorId hidden = gelu(mlp, linear(mlp + ".c_fc", layer_norm(path + ".ln_2", x), c_.width, ffn_, 0.02));
    return add(path, x, dropout(mlp, linear(mlp + ".c_proj", hidden, ffn_, c_.width, residual_stddev)));
  }

  TensorId embedding() {
    const TensorId positions = parameter("wpe.weight", {c_.max_seq_len, c_.width}, {.stddev = 0.02});
    const TensorId x = activation(rows_ * c_.width);
    op("wte", OpKind::embedding, {.rows = rows_, .cols = c_.width, .inner = c_.vocab_size, .seq = shape_.seq},
       {graph_.tokens, token_table_, positions}, {x});
    return x;
  }

  TensorId layer_norm(const std::string& name, TensorId x) {
    const TensorId gain = parameter(name + ".weight", {c_.width}, {.constant = 1});
    const TensorId bias = parameter(name + ".bias", {c_.width}, {});
    const TensorId y = activation(rows_ * c_.width), mean = activation(rows_), rstd = activation(rows_);
    op(name, OpKind::layer_norm, {.rows = rows_, .cols = c_.width}, {x, gain, bias}, {y, mean, rstd},
       layer_norm_epsilon);
    return y;
  }

  TensorId linear(const std::string& name, TensorId x, std::int64_t in, std::int64_t out, double stddev) {
    const TensorId weight = parameter(name + ".weight", {out, in}, {.stddev = stddev});
    const TensorId bias = parameter(name + ".bias", {out}, {});
    const TensorId y = activation(rows_ * out);
    op(name, OpKind::linear, {.rows = rows_, .cols = out, .inner = in}, {x, weight, bias}, {y});
    return y;
  }

  TensorId attention(const std::string& path, TensorId qkv) {
    const TensorId y = activation(rows_ * c_.width), log_sum_exp = activation(rows_ * c_.heads);
    op(path, OpKind::attention,
       {.inner = c_.width / c_.heads, .batch = shape_.batch, .seq = shape_.seq, .heads = c_.heads}, {qkv},
       {y, log_sum_exp});
    return y;
  }

  TensorId gelu(const std::string& path, TensorId x) {
    const TensorId y = activation(rows_ * ffn_);
    op(path, OpKind::gelu, {.rows = rows_, .cols = ffn_}, {x}, {y});
    return y;
  }

  TensorId add(const std::string& path, TensorId a, TensorId b) {
    const TensorId sum = activation(rows_ * c_.width);
    op(path, OpKind::add, {.rows = rows_, .cols = c_.width}, {a, b}, {sum});
    return sum;
  }

  TensorId dropout(const std::string& path, TensorId x) {
    if (c_.dropout == 0) return x;
    const TensorId y = activation(rows_ * c_.width);
    op(path, OpKind::dropout, {.rows = rows_, .cols = c_.width}, {x}, {y}, static_cast<float>(c_.dropout));
    graph_.operators.back().stream = dropouts_++;
    return y;
  }

  void head(TensorId x) {
    const TensorId weight =
        c_.tied_head ? token_table_ : parameter("lm_head.weight", {c_.vocab_size, c_.width}, {.stddev = 0.02});
    const TensorId logits = activation(rows_ * c_.vocab_size), log_sum_exp = activation(rows_);
    op("lm_head", OpKind::linear, {.rows = rows_, .cols = c_.vocab_size, .inner = c_.width},
       {x, weight, TensorId::none()}, {logits});
    graph_.loss = graph_.add_tensor({.role = Role::activation, .dtype = DType::f64, .elements = 2});
    op("loss", OpKind::cross_entropy, {.rows = rows_, .cols = c_.vocab_size}, {logits, graph_.targets},
       {graph_.loss, log_sum_exp});
  }

  UnitId add_unit(std::string name) {
    graph_.units.push_back({.name = std::move(name)});
    return {static_cast<std::uint32_t>(graph_.units.size() - 1)};
  }

  TensorId input() { return graph_.add_tensor({.role = Role::input, .dtype = DType::i32, .elements = rows_}); }

  TensorId activation(std::int64_t elements) {
    return graph_.add_tensor({.role = Role::activation, .dtype = dtype_, .elements = elements});
  }

  TensorId parameter(std::string name, std::vector<std::int64_t> shape, const Initial& initial) {
    const ParameterId id{static_cast<std::uint32_t>(graph_.parameters.size())};
    graph_.parameters.push_back(
        {.name = std::move(name), .shape = std::move(shape), .unit = unit_, .initial = initial, .gradient = dtype_});
    Parameter& added = graph_.parameters.back();
    added.value =
        graph_.add_tensor({.role = Role::parameter, .dtype = dtype_, .elements = added.elements(), .parameter = id});
    graph_.units[unit_.value].parameters.push_back(id);
    return added.value;
  }

  void op(const std::string& path, OpKind kind, const Sizes& sizes, std::vector<TensorId> inputs,
          std::vector<TensorId> outputs, float scalar = 0) {
    graph_.operators.push_back({.kind = kind,
                                .phase = Phase::forward,
                                .unit = unit_,
                                .module = graph_.add_module(path),
                                .sizes = sizes,
                                .inputs = std::move(inputs),
                                .outputs = std::move(outputs),
                                .scalar = scalar});
  }

  const GptConfig& c_;
  std::int64_t rows_;
  BatchShape shape_;
  DType dtype_;
  std::int64_t ffn_;
  Graph graph_;
  UnitId unit_;
  TensorId token_table_;
  std::uint32_t dropouts_ = 0;
};

}  // namespace

Graph build_gpt(const GptConfig& config, const BatchShape& shape, DType dtype) {
  FORESHARD_EXPECT(problems(config, shape).empty(), problems(config, shape).front());
  return GptBuilder(config, shape, dtype).build();
}

}  // namespace foreshard::model
