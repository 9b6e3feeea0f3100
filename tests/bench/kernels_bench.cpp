// Rates of the cpu kernels, one thread unless OMP_NUM_THREADS says otherwise. Compare "GFLOP/s" with matmul's of the
// same run, and "GB/s" (operands read once + results written once) with copy's.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "kernels/operand.hpp"

namespace foreshard::kernels {
namespace {

using benchmark::Counter;
using benchmark::State;

template <class T>
struct ArrayOf {
  explicit ArrayOf(std::int64_t count, float spread = 1) : data(static_cast<std::size_t>(count)) {
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = static_cast<T>(spread * static_cast<float>(uniform(philox(7, data.size(), i)[0]) - 0.5));
    }
  }
  operator Const() const { return {data.data(), dtype_of<T>}; }
  operator Mut() { return {data.data(), dtype_of<T>}; }
  std::vector<T> data;
};
using Array = ArrayOf<float>;

struct Tokens {
  Tokens(std::int64_t count, std::int64_t vocab) : data(static_cast<std::size_t>(count)) {
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::int32_t>(philox(9, 0, i)[0] % vocab);
  }
  operator Const() const { return {data.data(), DType::i32}; }
  std::vector<std::int32_t> data;
};

Backend& cpu() {
  static const auto backend = make_cpu();
  return *backend;
}

void rate(State& state, const char* unit, double per_call) {
  state.counters[unit] = Counter(per_call * 1e-9, Counter::kIsIterationInvariantRate);
}

void copy(State& state) {
  const Array x(state.range(0));
  Array y(state.range(0));
  for (auto _ : state) {
    std::memcpy(y.data.data(), x.data.data(), x.data.size() * 4);
    benchmark::ClobberMemory();
  }
  rate(state, "GB/s", 8.0 * static_cast<double>(x.data.size()));
}
BENCHMARK(copy)->Arg(512 * 192)->Arg(512 * 768)->Arg(1 << 24);

/// Arguments: m, n, k, form (0 forward NT with bias, 1 input gradient NN, 2 weight gradient TN, accumulated).
template <class T, class Result>
void products(State& state) {
  const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2), form = state.range(3);
  const ArrayOf<T> a(m * k), b(k * n), bias(n);
  ArrayOf<Result> c(m * n);
  const Matmul o{m, n, k, form == 2, form == 0, form == 2};
  for (auto _ : state) cpu().matmul(o, a, b, form == 0 ? Const(bias) : Const{}, c);
  rate(state, "GFLOP/s", 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
}
void matmul(State& state) { products<float, float>(state); }

/// The gradients of weights in f32, as accumulated over micro-batches.
template <MatmulRoute route>
void matmul_bf16(State& state) {
  cpu().set_matmul_routes({.otherwise = route});
  state.range(3) == 2 ? products<BFloat16, float>(state) : products<BFloat16, BFloat16>(state);
}

void shapes(benchmark::internal::Benchmark* matmul) {
  matmul->Args({512, 576, 192, 0})
      ->Args({512, 768, 192, 0})
      ->Args({512, 192, 768, 1})
      ->Args({768, 192, 512, 2})
      ->Args({512, 2048, 192, 0})
      ->Args({2048, 192, 512, 2})
      ->Args({512, 3072, 768, 0})
      ->Args({512, 768, 3072, 1})
      ->Args({3072, 768, 512, 2});
}
BENCHMARK(matmul)->Apply(shapes);
BENCHMARK(matmul_bf16<MatmulRoute::native>)->Name("matmul_bf16_native")->Apply(shapes);
BENCHMARK(matmul_bf16<MatmulRoute::widened>)->Name("matmul_bf16_widened")->Apply(shapes);

template <class From, class To>
void cast(State& state) {
  const ArrayOf<From> from(state.range(0));
  ArrayOf<To> to(state.range(0));
  for (auto _ : state) cpu().cast(state.range(0), false, from, to);
  rate(state, "GB/s", static_cast<double>((sizeof(From) + sizeof(To)) * from.data.size()));
}
BENCHMARK(cast<float, BFloat16>)->Name("cast_to_bf16")->Arg(512 * 768)->Arg(1 << 24);
BENCHMARK(cast<BFloat16, float>)->Name("cast_from_bf16")->Arg(512 * 768)->Arg(1 << 24);
BENCHMARK(cast<float, Float16>)->Name("cast_to_f16")->Arg(512 * 768);
BENCHMARK(cast<Float16, float>)->Name("cast_from_f16")->Arg(512 * 768);

void bias_grad(State& state) {
  const Rows o{state.range(0), state.range(1)};
  const Array dy(o.rows * o.cols);
  Array dbias(o.cols);
  for (auto _ : state) cpu().bias_grad(o, true, dy, dbias);
  rate(state, "GB/s", 4.0 * static_cast<double>(o.rows * o.cols));
}
BENCHMARK(bias_grad)->Args({512, 192})->Args({512, 768})->Args({512, 3072});

template <class T>
void layer_norm(State& state) {
  const Rows o{state.range(0), state.range(1)};
  const ArrayOf<T> x(o.rows * o.cols), residual(o.rows * o.cols), gain(o.cols), bias(o.cols);
  ArrayOf<T> sum(o.rows * o.cols), y(o.rows * o.cols);
  Array mean(o.rows), rstd(o.rows);
  for (auto _ : state) cpu().layer_norm(o, 1e-5F, x, residual, gain, bias, sum, y, mean, rstd);
  rate(state, "GB/s", 4.0 * sizeof(T) * static_cast<double>(o.rows * o.cols));
}
BENCHMARK(layer_norm<float>)->Name("layer_norm")->Args({512, 192})->Args({512, 768});
BENCHMARK(layer_norm<BFloat16>)->Name("layer_norm_bf16")->Args({512, 192})->Args({512, 768});

template <class T>
void layer_norm_backward(State& state) {
  const Rows o{state.range(0), state.range(1)};
  const ArrayOf<T> dy(o.rows * o.cols), x(o.rows * o.cols), residual(o.rows * o.cols), gain(o.cols);
  const Array mean(o.rows), rstd(o.rows);
  ArrayOf<T> dx(o.rows * o.cols);
  Array dgain(o.cols), dbias(o.cols);
  for (auto _ : state) cpu().layer_norm_backward(o, true, dy, x, gain, mean, rstd, residual, dx, dgain, dbias);
  rate(state, "GB/s", 4.0 * sizeof(T) * static_cast<double>(o.rows * o.cols));
}
BENCHMARK(layer_norm_backward<float>)->Name("layer_norm_backward")->Args({512, 192})->Args({512, 768});
BENCHMARK(layer_norm_backward<BFloat16>)->Name("layer_norm_backward_bf16")->Args({512, 192})->Args({512, 768});

template <class T>
void gelu(State& state) {
  const ArrayOf<T> x(state.range(0), 8);
  ArrayOf<T> y(state.range(0));
  for (auto _ : state) cpu().gelu(state.range(0), x, y);
  rate(state, "GB/s", 2.0 * sizeof(T) * static_cast<double>(state.range(0)));
}
BENCHMARK(gelu<float>)->Name("gelu")->Arg(512 * 768)->Arg(512 * 3072);
BENCHMARK(gelu<BFloat16>)->Name("gelu_bf16")->Arg(512 * 768)->Arg(512 * 3072);

void gelu_backward(State& state) {
  const Array x(state.range(0), 8), dy(state.range(0));
  Array dx(state.range(0));
  for (auto _ : state) cpu().gelu_backward(state.range(0), dy, x, dx);
  rate(state, "GB/s", 12.0 * static_cast<double>(state.range(0)));
}
BENCHMARK(gelu_backward)->Arg(512 * 768)->Arg(512 * 3072);

void add(State& state) {
  const Array a(state.range(0)), b(state.range(0));
  Array sum(state.range(0));
  for (auto _ : state) cpu().add(state.range(0), a, b, sum);
  rate(state, "GB/s", 12.0 * static_cast<double>(state.range(0)));
}
BENCHMARK(add)->Arg(512 * 192)->Arg(512 * 768);

void dropout(State& state) {
  const Array x(state.range(0));
  Array y(state.range(0));
  for (auto _ : state) cpu().dropout({state.range(0), 0.1F, 1, 2}, x, y);
  rate(state, "GB/s", 8.0 * static_cast<double>(state.range(0)));
}
BENCHMARK(dropout)->Arg(512 * 768);

double causal_products(const Attention& o, double products) {
  const double pairs = static_cast<double>(o.seq) * static_cast<double>(o.seq + 1) / 2;
  return products * 2 * pairs * static_cast<double>(o.width * o.heads * o.batch);
}

/// Arguments: batch, seq, heads, width.
void heads(benchmark::internal::Benchmark* attention) {
  attention->Args({2, 256, 6, 32})
      ->Args({1, 256, 12, 64})
      ->Args({1, 1024, 12, 64})
      ->Args({8, 64, 4, 64})
      ->Args({1, 1024, 16, 80});
}

template <class T>
void attention(State& state) {
  const Attention o{state.range(0), state.range(1), state.range(2), state.range(3)};
  const std::int64_t tokens = o.batch * o.seq, inner = o.heads * o.width;
  const ArrayOf<T> qkv(3 * tokens * inner, 4);
  ArrayOf<T> y(tokens * inner);
  Array lse(tokens * o.heads);
  for (auto _ : state) cpu().attention(o, qkv, y, lse);
  rate(state, "GFLOP/s", causal_products(o, 2));
}
template <MatmulRoute route>
void attention_bf16(State& state) {
  cpu().set_attention_routes({.otherwise = route});
  attention<BFloat16>(state);
}
BENCHMARK(attention<float>)->Name("attention")->Apply(heads);
BENCHMARK(attention_bf16<MatmulRoute::native>)->Name("attention_bf16_native")->Apply(heads);
BENCHMARK(attention_bf16<MatmulRoute::widened>)->Name("attention_bf16_widened")->Apply(heads);

template <class T>
void attention_backward(State& state) {
  const Attention o{state.range(0), state.range(1), state.range(2), state.range(3)};
  const std::int64_t tokens = o.batch * o.seq, inner = o.heads * o.width;
  const ArrayOf<T> qkv(3 * tokens * inner, 4), dy(tokens * inner);
  ArrayOf<T> y(tokens * inner), dqkv(3 * tokens * inner);
  Array lse(tokens * o.heads);
  cpu().attention(o, qkv, y, lse);
  for (auto _ : state) cpu().attention_backward(o, dy, qkv, y, lse, dqkv);
  rate(state, "GFLOP/s", causal_products(o, 5));
}
template <MatmulRoute route>
void attention_backward_bf16(State& state) {
  cpu().set_attention_routes({.otherwise = route});
  attention_backward<BFloat16>(state);
}
BENCHMARK(attention_backward<float>)->Name("attention_backward")->Apply(heads);
BENCHMARK(attention_backward_bf16<MatmulRoute::native>)->Name("attention_backward_bf16_native")->Apply(heads);
BENCHMARK(attention_backward_bf16<MatmulRoute::widened>)->Name("attention_backward_bf16_widened")->Apply(heads);

void embedding(State& state) {
  const Embedding o{512, state.range(0), state.range(1), 256};
  const Tokens tokens(o.rows, o.vocab);
  const Array table(o.vocab * o.cols), positions(o.seq * o.cols);
  Array x(o.rows * o.cols);
  for (auto _ : state) cpu().embedding(o, tokens, table, positions, x);
  rate(state, "GB/s", 12.0 * static_cast<double>(o.rows * o.cols));
}
BENCHMARK(embedding)->Args({192, 2048})->Args({768, 50257});

void embedding_backward(State& state) {
  const Embedding o{512, state.range(0), state.range(1), 256};
  const Tokens tokens(o.rows, o.vocab);
  const Array dx(o.rows * o.cols);
  Array d_table(o.vocab * o.cols), d_positions(o.seq * o.cols);
  for (auto _ : state) cpu().embedding_backward(o, true, dx, tokens, d_table, d_positions);
  rate(state, "GB/s", 20.0 * static_cast<double>(o.rows * o.cols));
}
BENCHMARK(embedding_backward)->Args({192, 2048})->Args({768, 50257});

void cross_entropy(State& state) {
  const Rows o{state.range(0), state.range(1)};
  const Tokens targets(o.rows, o.cols);
  const Array logits(o.rows * o.cols, 8);
  Array lse(o.rows);
  double loss[2] = {};
  for (auto _ : state) cpu().cross_entropy(o, logits, targets, {loss, DType::f64}, lse);
  rate(state, "GB/s", 4.0 * static_cast<double>(o.rows * o.cols));
}
BENCHMARK(cross_entropy)->Args({512, 2048})->Args({256, 50257});

void cross_entropy_backward(State& state) {
  const Rows o{state.range(0), state.range(1)};
  const Tokens targets(o.rows, o.cols);
  const Array logits(o.rows * o.cols, 8), lse(o.rows);
  Array dlogits(o.rows * o.cols);
  for (auto _ : state) cpu().cross_entropy_backward(o, 1, logits, targets, lse, dlogits);
  rate(state, "GB/s", 8.0 * static_cast<double>(o.rows * o.cols));
}
BENCHMARK(cross_entropy_backward)->Args({512, 2048})->Args({256, 50257});

void add_squares(State& state) {
  const Array x(state.range(0));
  std::int64_t words[ExactSum::words] = {};
  for (auto _ : state) cpu().add_powers(2, state.range(0), x, words);
  rate(state, "GB/s", 4.0 * static_cast<double>(state.range(0)));
}
BENCHMARK(add_squares)->Arg(1 << 18)->Arg(1 << 24);

void adamw(State& state) {
  const Array grad(state.range(0));
  Array p(state.range(0)), m(state.range(0)), v(state.range(0), 0);
  Update o{state.range(0)};
  o.learning_rate = 1e-4;
  o.weight_decay = 0.1;
  for (auto _ : state) cpu().adamw(o, grad, p, m, v);
  rate(state, "GB/s", 28.0 * static_cast<double>(state.range(0)));
}
BENCHMARK(adamw)->Arg(1 << 18)->Arg(1 << 24);

}  // namespace
}  // namespace foreshard::kernels

BENCHMARK_MAIN();
