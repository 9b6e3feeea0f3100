#pragma once
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "differences.hpp"
#include "half_arrays.hpp"

/// Attention whose queries, keys and values lie apart, with or without a bias by distance, and what it should give.
namespace foreshard::kernels {

/// Everything that attention reads and writes.
template <class T>
struct Operands {
  Attention o;
  bool biased;
  std::int64_t rows, query_width, key_width;
  Array<T> q, k, v, bias, y, dy, dq, dk, dv, dbias;
  Array<Computed<T>> lse;

  explicit Operands(const Attention& shape, bool with_bias = false)
      : o(shape),
        biased(with_bias),
        rows(o.batch * o.seq),
        query_width(o.heads * o.width),
        key_width(o.keys() * o.width),
        q(Array<T>::random(rows * query_width, 1)),
        k(Array<T>::random(rows * key_width, 2)),
        v(Array<T>::random(rows * key_width, 3)),
        bias(Array<T>::random(biased ? o.heads * o.distances() : 0, 5, 2)),
        y(rows * query_width),
        dy(Array<T>::random(rows * query_width, 4)),
        dq(rows * query_width),
        dk(rows * key_width),
        dv(rows * key_width),
        dbias(bias.size()),
        lse(rows * o.heads) {}

  void forward(Backend& backend) { backend.attention(o, q, k, v, bias, y, lse); }
  void backward(Backend& backend) { backend.attention_backward(o, dy, q, k, v, bias, y, lse, dq, dk, dv, dbias); }
  void both(Backend& backend) { forward(backend), backward(backend); }

  auto results() const { return std::array{&y, &dq, &dk, &dv, &dbias}; }
};

inline std::string text_of(const Attention& o, bool biased = false) {
  return (testing::Message() << "seq " << o.seq << " width " << o.width << " key heads " << o.key_heads << " alibi "
                             << o.alibi << " window " << o.window << (o.causal ? " causal" : "")
                             << (o.scaled ? " scaled" : "") << (biased ? " biased" : ""))
      .GetString();
}

/// Tensor cores take probabilities and their gradients as numbers of 16 bits, rounded, and not as floats.
template <class T>
double allowed_of(const Backend& backend) {
  return backend.name() == "cuda" ? 2 * allowed<T> : allowed<T>;
}

/// The gradients are those of the y that was rounded.
template <class T>
void expect_equal_to_reference(Backend& backend, const Attention& o, double allowed_error, bool biased = false) {
  const auto reference = make_reference();
  SCOPED_TRACE(text_of(o, biased));
  Operands<T> x(o, biased);
  Operands<double> truth(o, biased);
  truth.q = Doubles(x.q), truth.k = Doubles(x.k), truth.v = Doubles(x.v), truth.dy = Doubles(x.dy);
  truth.bias = Doubles(x.bias);
  x.forward(backend);
  truth.forward(*reference);
  EXPECT_LE(error(x.lse, truth.lse), float_error);
  EXPECT_LE(error(x.y, truth.y), allowed_error);
  truth.y = Doubles(x.y);
  x.backward(backend);
  truth.backward(*reference);
  for (std::size_t i = 1; i < x.results().size(); ++i)
    EXPECT_LE(error(*x.results()[i], *truth.results()[i]), allowed_error) << "result " << i;
}

/// Of a loss dy·y, by the reference in double.
inline void expect_gradients_of_differences(const Attention& o, bool biased = false) {
  const auto reference = make_reference();
  SCOPED_TRACE(text_of(o, biased));
  Operands<double> x(o, biased);
  const auto loss = [&] { return x.forward(*reference), dot(x.dy, x.y); };
  loss();
  x.backward(*reference);
  EXPECT_LE(error(x.dq, differences(x.q, loss)), difference_error);
  EXPECT_LE(error(x.dk, differences(x.k, loss)), difference_error);
  EXPECT_LE(error(x.dv, differences(x.v, loss)), difference_error);
  EXPECT_LE(error(x.dbias, differences(x.bias, loss)), difference_error);
}

}  // namespace foreshard::kernels
