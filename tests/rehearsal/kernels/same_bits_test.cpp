// The same numbers give the same bits: in whatever order a device takes blocks, and wherever operands lie.
#include "half_arrays.hpp"
#include "rehearsal/kernels/device_fixture.hpp"

namespace foreshard::kernels::cuda {
namespace {

using T = BFloat16;

/// An array in device memory that begins `shift` elements behind an address of full alignment.
template <class U>
class Shifted {
 public:
  Shifted(const Array<U>& array, std::int64_t shift) : shift_(shift), whole_(padded(array, shift)) {}

  operator Const() const { return {whole_.data() + shift_, dtype_of<U>}; }
  operator Mut() const { return {whole_.data() + shift_, dtype_of<U>}; }
  std::vector<U> values() const {
    const std::vector<U> all = whole_.values();
    return {all.begin() + shift_, all.end()};
  }

 private:
  static Array<U> padded(const Array<U>& array, std::int64_t shift) {
    Array<U> whole(array.size() + shift);
    std::copy(array.data.begin(), array.data.end(), whole.data.begin() + shift);
    return whole;
  }
  std::int64_t shift_;
  DeviceArray<U> whole_;
};

class Outcome {
 public:
  template <class U>
  void add(const U& array) {
    const auto values = array.values();
    const auto* bytes = reinterpret_cast<const char*>(values.data());
    bytes_.insert(bytes_.end(), bytes, bytes + values.size() * sizeof(values[0]));
  }
  bool operator==(const Outcome&) const = default;

 private:
  std::vector<char> bytes_;
};

Outcome norms(Kernels& kernels, std::int64_t shift) {
  const Rows o{70, 40};
  const Shifted<T> x(Array<T>::random(2800, 1), shift), residual(Array<T>::random(2800, 2), shift),
      gain(Array<T>::random(40, 3), shift), bias(Array<T>::random(40, 4), shift), sum(Array<T>(2800), shift),
      y(Array<T>(2800), shift), dx(Array<T>(2800), shift);
  const Shifted<float> mean(Floats(70), shift), rstd(Floats(70), shift), dgain(Floats(40), shift),
      dbias(Floats(40), shift);
  Outcome outcome;
  kernels.layer_norm(o, 1e-5F, x, residual, gain, bias, sum, y, mean, rstd);
  kernels.layer_norm_backward(o, false, y, sum, gain, mean, rstd, residual, dx, dgain, dbias);
  for (const auto* array : {&sum, &y, &dx}) outcome.add(*array);
  for (const auto* array : {&mean, &rstd, &dgain, &dbias}) outcome.add(*array);
  kernels.rms_norm(o, 1e-5F, x, residual, gain, sum, y, rstd);
  kernels.rms_norm_backward(o, true, y, sum, gain, rstd, residual, dx, dgain);
  for (const auto* array : {&y, &dx}) outcome.add(*array);
  outcome.add(dgain);
  kernels.bias_grad(o, true, y, dbias);
  outcome.add(dbias);
  return outcome;
}

Outcome elements(Kernels& kernels, std::int64_t shift) {
  const std::int64_t n = 3000;
  const Shifted<T> a(Array<T>::random(n, 1), shift), b(Array<T>::random(n, 2), shift), c(Array<T>::random(n, 3), shift),
      y(Array<T>(n), shift), z(Array<T>(n), shift);
  const Shifted<float> wide(Floats::random(n, 4), shift);
  Outcome outcome;
  const auto note = [&] {
    outcome.add(y);
    outcome.add(z);
  };
  kernels.add(n, a, b, y);
  kernels.gelu(n, a, z);
  note();
  kernels.swiglu(n, a, b, y);
  kernels.swiglu_backward(n, a, b, c, y, z);
  note();
  kernels.dropout({.count = n, .probability = 0.3F, .key = 1, .stream = 2, .first = 12}, a, y);
  kernels.rotary({.rows = 30, .heads = 5, .width = 20, .seq = 10}, a, z);
  note();
  kernels.cast(n, true, a, wide);
  outcome.add(wide);
  return outcome;
}

Outcome sums(Kernels& kernels, std::int64_t shift) {
  const Rows o{24, 48};
  const Shifted<T> logits(Array<T>::random(1152, 1, 4), shift), d(Array<T>(1152), shift);
  const Shifted<std::int32_t> tokens(random_tokens(24, 7, 2), 0);
  const Shifted<double> loss(Array<double>(2), 0);
  const Shifted<float> lse(Floats(24), shift), table(Floats(7 * 48), shift), positions(Floats(12 * 48), shift);
  const Shifted<std::int64_t> words(Array<std::int64_t>(ExactSum::words), 0), largest(Array<std::int64_t>(1), 0);
  Outcome outcome;
  kernels.cross_entropy(o, logits, tokens, loss, lse);
  kernels.cross_entropy_backward(o, 8, logits, tokens, lse, d);
  kernels.embedding_backward({24, 48, 7, 12}, false, d, tokens, table, positions);
  auto* words_data = static_cast<std::int64_t*>(Mut(words).data);
  kernels.add_powers(3, 1150, logits, std::span<std::int64_t, ExactSum::words>(words_data, ExactSum::words));
  kernels.max_magnitude(1150, logits, *static_cast<std::int64_t*>(Mut(largest).data));
  outcome.add(loss);
  outcome.add(lse);
  outcome.add(d);
  outcome.add(table);
  outcome.add(positions);
  outcome.add(words);
  outcome.add(largest);
  return outcome;
}

Outcome attention(Kernels& kernels, std::int64_t shift) {
  Outcome outcome;
  for (const std::int64_t width : {64, 136}) {
    const Attention o{.batch = 1, .seq = 70, .heads = 2, .width = width, .key_heads = 1};
    const std::int64_t n = 70 * 2 * width;
    const Shifted<T> q(Array<T>::random(n, 1), shift), k(Array<T>::random(n / 2, 2), shift),
        v(Array<T>::random(n / 2, 3), shift), dy(Array<T>::random(n, 4), shift), y(Array<T>(n), shift),
        dq(Array<T>(n), shift), dk(Array<T>(n / 2), shift), dv(Array<T>(n / 2), shift);
    const Shifted<float> lse(Floats(140), shift);
    kernels.attention(o, q, k, v, y, lse);
    kernels.attention_backward(o, dy, q, k, v, y, lse, dq, dk, dv);
    for (const auto* array : {&y, &dq, &dk, &dv}) outcome.add(*array);
    outcome.add(lse);
  }
  return outcome;
}

Outcome updates(Kernels& kernels, std::int64_t shift) {
  Update o{.count = 3001, .step = 3, .learning_rate = 0.1};
  const Shifted<T> g(Array<T>::random(3001, 1), shift);
  const Shifted<float> p(Floats::random(3001, 2), shift), m(Floats::random(3001, 3), shift),
      v(Floats(3001, 0.5F), shift);
  kernels.adamw(o, g, p, m, v);
  kernels.lion(o, g, p, m);
  kernels.sgd(o, g, p, {});
  Outcome outcome;
  const Shifted<T> half(Array<T>::random(3001, 4), shift);
  o.rounding = {.stochastic = true, .key = 1, .stream = 2, .first = 8};
  kernels.adamw(o, g, half, m, v);
  o.rounding.first = 13;
  kernels.lion(o, g, half, m);
  outcome.add(half);
  for (const auto* array : {&p, &m, &v}) outcome.add(*array);
  return outcome;
}

struct Family {
  const char* name;
  Outcome (*run)(Kernels&, std::int64_t shift);
};
constexpr Family families[] = {
    {"norms", norms}, {"elements", elements}, {"sums", sums}, {"attention", attention}, {"updates", updates}};

using SameBits = OnStream;

TEST_F(SameBits, InEveryOrderOfBlocks) {
  for (const Family& family : families) {
    rehearsal::shuffle(1);
    const Outcome first = family.run(*kernels, 0);
    for (const std::uint64_t seed : {2, 3}) {
      rehearsal::shuffle(seed);
      EXPECT_EQ(family.run(*kernels, 0), first) << family.name;
    }
  }
}

/// One lane then has other elements, so that sums of a row may be rounded otherwise: norms and losses are left out.
TEST_F(SameBits, WhereverOperandsLie) {
  for (const Family& family : {families[1], families[3], families[4]}) {
    const Outcome aligned = family.run(*kernels, 0);
    for (const std::int64_t shift : {1, 4}) EXPECT_EQ(family.run(*kernels, shift), aligned) << family.name << shift;
  }
}

}  // namespace
}  // namespace foreshard::kernels::cuda
