#pragma once
#include <gtest/gtest.h>

#include <string>

#include "differences.hpp"
#include "half_arrays.hpp"

/// Attention whose queries, keys and values lie apart, and what it should give.
namespace foreshard::kernels {

/// Everything that attention reads and writes.
template <class T>
struct Operands {
  Attention o;
  std::int64_t rows, query_width, key_width;
  Array<T> q, k, v, y, dy, dq, dk, dv;
  Array<Computed<T>> lse;

  explicit Operands(const Attention& shape)
      : o(shape),
        rows(o.batch * o.seq),
        query_width(o.heads * o.width),
        key_width(o.keys() * o.width),
        q(Array<T>::random(rows * query_width, 1)),
        k(Array<T>::random(rows * key_width, 2)),
        v(Array<T>::random(rows * key_width, 3)),
        y(rows * query_width),
        dy(Array<T>::random(rows * query_width, 4)),
        dq(rows * query_width),
        dk(rows * key_width),
        dv(rows * key_width),
        lse(rows * o.heads) {}

  void forward(Backend& backend) { backend.attention(o, q, k, v, y, lse); }
  void backward(Backend& backend) { backend.attention_backward(o, dy, q, k, v, y, lse, dq, dk, dv); }
};

inline std::string text_of(const Attention& o) {
  return (testing::Message() << "seq " << o.seq << " width " << o.width << " key heads " << o.key_heads << " alibi "
                             << o.alibi << " window " << o.window)
      .GetString();
}

/// Tensor cores take probabilities and their gradients as numbers of 16 bits, rounded, and not as floats.
template <class T>
double allowed_of(const Backend& backend) {
  return backend.name() == "cuda" ? 2 * allowed<T> : allowed<T>;
}

template <class T>
void expect_equal_to_reference(Backend& backend, const Attention& o, double allowed_error) {
  const auto reference = make_reference();
  SCOPED_TRACE(text_of(o));
  Operands<T> x(o);
  Operands<double> truth(o);
  truth.q = Doubles(x.q), truth.k = Doubles(x.k), truth.v = Doubles(x.v), truth.dy = Doubles(x.dy);
  x.forward(backend);
  truth.forward(*reference);
  EXPECT_LE(error(x.y, truth.y), allowed_error);
  EXPECT_LE(error(x.lse, truth.lse), float_error);
  truth.y = Doubles(x.y);
  x.backward(backend);
  truth.backward(*reference);
  EXPECT_LE(error(x.dq, truth.dq), allowed_error);
  EXPECT_LE(error(x.dk, truth.dk), allowed_error);
  EXPECT_LE(error(x.dv, truth.dv), allowed_error);
}

}  // namespace foreshard::kernels
