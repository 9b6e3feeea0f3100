#include "model/mpt.hpp"

#include <fmt/format.h>

#include <array>

#include "base/error.hpp"
#include "model/graph_builder.hpp"
#include "model/presets.hpp"
#include "model/size_problems.hpp"

namespace foreshard::model {
namespace {

constexpr double stddev = 0.02;  // initializer_range of Hugging Face's configuration

/// As llm-foundry benchmarks MPT: with a table of positions and with biases (mosaicml/llm-foundry,
/// scripts/train/yamls/pretrain and its table of throughputs).
constexpr MptConfig benchmarked(std::int64_t layers, std::int64_t width, std::int64_t heads) {
  return {
      .layers = layers, .width = width, .heads = heads, .biases = true, .learned_positions = true, .alibi_bias_max = 0};
}

constexpr MptConfig byte_level(std::int64_t layers, std::int64_t width) {
  return {.layers = layers, .width = width, .heads = 4, .vocab_size = 256, .max_seq_len = 256};
}

/// mpt-7b and mpt-30b are as published with their weights (MosaicML 2023); the byte models are ours.
constexpr std::array<Preset<MptConfig>, 13> presets = {{
    {"mpt-7b", {.layers = 32, .width = 4096, .heads = 32, .vocab_size = 50432}},
    {"mpt-30b", {.layers = 48, .width = 7168, .heads = 64, .vocab_size = 50432, .max_seq_len = 8192}},
    {"mpt-125m", benchmarked(12, 768, 12)},
    {"mpt-350m", benchmarked(24, 1024, 16)},
    {"mpt-760m", benchmarked(24, 1536, 12)},
    {"mpt-1b", benchmarked(24, 2048, 16)},
    {"mpt-3b", benchmarked(32, 2560, 20)},
    {"mpt-7b-benchmark", benchmarked(32, 4096, 32)},
    {"mpt-13b", benchmarked(40, 5120, 40)},
    {"mpt-30b-benchmark", benchmarked(48, 7168, 56)},
    {"mpt-70b", benchmarked(80, 8192, 64)},
    {"byte-mpt-tiny", byte_level(2, 64)},
    {"byte-mpt-small", byte_level(4, 128)},
}};

class MptBuilder : GraphBuilder {
 public:
  MptBuilder(const MptConfig& config, const BatchShape& shape, DType dtype) : GraphBuilder(shape, dtype), c_(config) {}

  Graph build() {
    const TensorId table = parameter("wte.weight", {c_.vocab_size, c_.width}, {.stddev = stddev});
    const TensorId positions = c_.learned_positions
                                   ? parameter("wpe.weight", {c_.max_seq_len, c_.width}, {.stddev = stddev})
                                   : TensorId::none();
    TensorId x = embedding("wte", table, positions, c_.vocab_size, c_.width);
    for (std::int64_t layer = 0; layer < c_.layers; ++layer) x = block(x, layer);
    return_to_root();
    x = norm("norm_f", x);
    loss(x, c_.tied_head ? table : parameter("lm_head.weight", {c_.vocab_size, c_.width}, {.stddev = stddev}), c_.width,
         c_.vocab_size);
    return take();
  }

 private:
  TensorId block(TensorId x, std::int64_t layer) {
    begin_unit(fmt::format("u{}", layer));
    const std::string path = fmt::format("blocks.{}", layer);
    x = add(path, x, self_attention(path + ".attn", norm(path + ".norm_1", x)));
    return add(path, x, feed_forward(path + ".ffn", norm(path + ".norm_2", x)));
  }

  TensorId self_attention(const std::string& path, TensorId x) {
    const TensorId qkv = project(path + ".Wqkv", x, c_.width, 3 * c_.width);
    const TensorId mixed =
        attention(path, OpKind::attention,
                  {.inner = c_.width / c_.heads, .batch = shape().batch, .seq = shape().seq, .heads = c_.heads}, {qkv},
                  static_cast<float>(c_.alibi_bias_max));
    return project(path + ".out_proj", mixed, c_.width, c_.width);
  }

  TensorId feed_forward(const std::string& path, TensorId x) {
    const std::int64_t inner = c_.inner_width();
    const TensorId hidden =
        elementwise(path, OpKind::gelu_exact, inner, {project(path + ".up_proj", x, c_.width, inner)});
    return project(path + ".down_proj", hidden, inner, c_.width);
  }

  TensorId project(const std::string& name, TensorId x, std::int64_t in, std::int64_t out) {
    return linear(name, x, in, out, c_.biases, stddev);
  }

  TensorId norm(const std::string& name, TensorId x) {
    return layer_norm(name, x, c_.width, c_.norm_epsilon, c_.biases);
  }

  const MptConfig& c_;
};

}  // namespace

std::vector<std::string_view> mpt_presets() { return names_of(presets); }

MptConfig mpt_preset(std::string_view name) { return config_of(presets, name); }

std::vector<std::string> problems(const MptConfig& c, const BatchShape& shape) {
  const Extents extents{c.layers, c.width, c.heads, c.vocab_size, c.max_seq_len};
  std::vector<std::string> found;
  check_extents(extents, shape, found);
  const double ffn = check_inner_width(c.width, c.ffn_width, found);
  check_head_division(c.width, c.heads, found);
  check_elements(extents, ffn, shape, found);
  return found;
}

Graph build_mpt(const MptConfig& config, const BatchShape& shape, DType dtype) {
  FORESHARD_EXPECT(problems(config, shape).empty(), problems(config, shape).front());
  return MptBuilder(config, shape, dtype).build();
}

}  // namespace foreshard::model
