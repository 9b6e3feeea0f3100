#include <nlohmann/json.hpp>

#include "kernel_times.hpp"

namespace foreshard::gpu_bench {
namespace {

using kernels::Rows;

constexpr DType half = DType::bf16, single = DType::f32;
constexpr std::int64_t rows = 65536, cols = 1600, inner = 4 * cols;  // of GPT-2 XL, 64 sequences of 1024
constexpr std::int64_t vocab = 50304, seq = 1024, token_rows = 16384;
constexpr std::int64_t shard = 128 << 20;  // parameters

class Suite {
 public:
  explicit Suite(Device& device) : device_(device), kernels_(device.kernels()) {}

  nlohmann::json run() {
    norms();
    gates();
    elementwise();
    embeddings();
    cross_entropy();
    updates();
    return std::move(results_);
  }

 private:
  void add(const char* name, double bytes, const std::function<void()>& queue) {
    const Timing t = device_.time(queue);
    results_.push_back(
        {{"name", name}, {"bytes", bytes}, {"median_s", t.median_s}, {"p10_s", t.p10_s}, {"p90_s", t.p90_s}});
  }

  void norms() {
    const Rows o{rows, cols};
    const Numbers x(rows * cols, half), residual(rows * cols, half), gain(cols, half), bias(cols, half);
    Numbers sum(rows * cols, half), y(rows * cols, half), mean(rows, single), rstd(rows, single);
    Numbers dgain(cols, single), dbias(cols, single);
    const double four = 4.0 * 2 * rows * cols, statistic = 4.0 * rows;
    add("layer_norm", four + 2 * statistic,
        [&] { kernels_.layer_norm(o, 1e-5F, x, residual, gain, bias, sum, y, mean, rstd); });
    add("layer_norm_backward", four + 2 * statistic,
        [&] { kernels_.layer_norm_backward(o, true, y, x, gain, mean, rstd, residual, sum, dgain, dbias); });
    add("rms_norm", four + statistic, [&] { kernels_.rms_norm(o, 1e-5F, x, residual, gain, sum, y, rstd); });
    add("rms_norm_backward", four + statistic,
        [&] { kernels_.rms_norm_backward(o, true, y, x, gain, rstd, residual, sum, dgain); });
  }

  void gates() {
    constexpr std::int64_t n = rows * inner;
    const Numbers x(n, half, 8), dy(n, half);
    Numbers y(n, half), up(n, half);
    Numbers dbias(inner, single);
    const double array = 2.0 * n;
    add("gelu", 2 * array, [&] { kernels_.gelu(n, x, y); });
    add("gelu_backward", 3 * array, [&] { kernels_.gelu_backward(n, dy, x, y); });
    add("swiglu", 3 * array, [&] { kernels_.swiglu(n, x, dy, y); });
    add("swiglu_backward", 5 * array, [&] { kernels_.swiglu_backward(n, dy, x, dy, y, up); });
    add("bias_grad", array, [&] { kernels_.bias_grad({rows, inner}, true, dy, dbias); });
  }

  void elementwise() {
    constexpr std::int64_t n = rows * inner;
    const Numbers a(n, half), b(n, half);
    Numbers y(n, half), wide(n, single);
    add("add", 6.0 * n, [&] { kernels_.add(n, a, b, y); });
    add("dropout", 4.0 * n, [&] { kernels_.dropout({.count = n, .probability = 0.1F, .key = 1, .stream = 2}, a, y); });
    add("rotary", 4.0 * n,
        [&] { kernels_.rotary({.rows = rows, .heads = inner / 128, .width = 128, .seq = seq}, a, y); });
    add("cast to bf16", 6.0 * n, [&] { kernels_.cast(n, false, wide, y); });
    add("cast, add to f32", 10.0 * n, [&] { kernels_.cast(n, true, a, wide); });
    add("zero", 4.0 * n, [&] { kernels_.zero(kernels::Mut(wide).data, 4 * n); });
  }

  /// Rows of the token table count once for each token that occurs.
  void embeddings() {
    const kernels::Embedding o{.rows = token_rows, .cols = cols, .vocab = vocab, .seq = seq};
    const Tokens tokens(token_rows, vocab);
    const Numbers table(vocab * cols, half), positions(seq * cols, half);
    Numbers x(token_rows * cols, half), dtable(vocab * cols, single), dpositions(seq * cols, single);
    const double used = static_cast<double>(tokens.distinct() + seq) * cols, all = 2.0 * token_rows * cols;
    add("embedding", all + 2 * used, [&] { kernels_.embedding(o, tokens, table, positions, x); });
    add("embedding_backward", all + 8 * used,
        [&] { kernels_.embedding_backward(o, true, x, tokens, dtable, dpositions); });
  }

  void cross_entropy() {
    const Rows o{token_rows, vocab};
    const Tokens targets(token_rows, vocab);
    const Numbers logits(token_rows * vocab, half, 8);
    Numbers dlogits(token_rows * vocab, half), lse(token_rows, single), loss(4, single);  // of two doubles
    const double array = 2.0 * token_rows * vocab;
    add("cross_entropy", array, [&] {
      kernels_.cross_entropy(o, logits, targets, {kernels::Mut(loss).data, DType::f64}, lse);
    });
    add("cross_entropy_backward", 2 * array,
        [&] { kernels_.cross_entropy_backward(o, 1, logits, targets, lse, dlogits); });
  }

  void updates() {
    const kernels::Update o{.count = shard, .step = 3, .learning_rate = 1e-4, .weight_decay = 0.1};
    const Numbers grad(shard, single, 1e-3F);
    Numbers p(shard, single), m(shard, single, 1e-3F), v(shard, single, 1e-3F);
    const engine::cuda::DeviceMemory words(kernels::ExactSum::words * 8);
    auto* const sum = engine::cuda::as<std::int64_t>(words);
    add("sum of squares", 4.0 * shard, [&] {
      kernels_.add_powers(2, shard, grad,
                          std::span<std::int64_t, kernels::ExactSum::words>(sum, kernels::ExactSum::words));
    });
    kernels_.zero(kernels::Mut(v).data, 4 * shard);  // no square is negative
    add("adamw", 28.0 * shard, [&] { kernels_.adamw(o, grad, p, m, v); });
    add("lion", 20.0 * shard, [&] { kernels_.lion(o, grad, p, m); });
    add("sgd with momentum", 20.0 * shard, [&] { kernels_.sgd(o, grad, p, m); });
  }

  Device& device_;
  kernels::cuda::Kernels& kernels_;
  nlohmann::json results_ = nlohmann::json::array();
};

}  // namespace

nlohmann::json memory_bound_kernels(Device& device) { return Suite(device).run(); }

}  // namespace foreshard::gpu_bench
