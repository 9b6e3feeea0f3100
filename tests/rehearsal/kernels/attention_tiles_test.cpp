// Attention on tensor cores at the widths it is made for, at sizes around its tiles, against the reference in double.
#include "half_arrays.hpp"
#include "rehearsal/kernels/device_fixture.hpp"

namespace foreshard::kernels::cuda {
namespace {

/// Of 16 bits, on the host.
template <class T>
struct Inputs {
  Attention o;
  std::int64_t rows = o.batch * o.seq, query_width = o.heads * o.width, key_width = o.keys() * o.width;
  Array<T> q = Array<T>::random(rows * query_width, 1), k = Array<T>::random(rows * key_width, 2),
           v = Array<T>::random(rows * key_width, 3), dy = Array<T>::random(rows * query_width, 4);
};

template <class T>
struct Results {
  Array<T> y, dq, dk, dv;
  Floats lse;
};

template <class T>
Results<T> on_device(Kernels& kernels, const Inputs<T>& x) {
  const DeviceArray<T> q(x.q), k(x.k), v(x.v), dy(x.dy), y(Array<T>(x.q.size())), dq(Array<T>(x.q.size())),
      dk(Array<T>(x.k.size())), dv(Array<T>(x.k.size()));
  const DeviceArray<float> lse(Floats(x.rows * x.o.heads));
  kernels.attention(x.o, q, k, v, y, lse);
  kernels.attention_backward(x.o, dy, q, k, v, y, lse, dq, dk, dv);
  Results<T> r;
  r.y.data = y.values(), r.dq.data = dq.values(), r.dk.data = dk.values(), r.dv.data = dv.values();
  r.lse.data = lse.values();
  return r;
}

template <class T>
void expect_equal_to_reference(Kernels& kernels, const Attention& o) {
  SCOPED_TRACE(testing::Message() << "seq " << o.seq << " width " << o.width << " key heads " << o.key_heads
                                  << " alibi " << o.alibi);
  const Inputs<T> x{o};
  const Results<T> r = on_device(kernels, x);
  Doubles y(x.q.size()), lse(x.rows * o.heads), dq(x.q.size()), dk(x.k.size()), dv(x.k.size());
  const auto reference = make_reference();
  const Doubles q(x.q), k(x.k), v(x.v);
  reference->attention(o, q, k, v, y, lse);
  EXPECT_LE(error(r.y, y), 2 * allowed<T>);
  EXPECT_LE(error(r.lse, lse), float_error);
  reference->attention_backward(o, Doubles(x.dy), q, k, v, Doubles(r.y), lse, dq, dk, dv);
  EXPECT_LE(error(r.dq, dq), 2 * allowed<T>);
  EXPECT_LE(error(r.dk, dk), 2 * allowed<T>);
  EXPECT_LE(error(r.dv, dv), 2 * allowed<T>);
}

using AttentionTiles = OnStream;

TEST_F(AttentionTiles, OfEveryWidthEqualReference) {
  for (const std::int64_t width : {24, 64, 72, 96, 128, 136}) {
    const Attention o{.batch = 1, .seq = 150, .heads = 2, .width = width, .key_heads = 1};
    expect_equal_to_reference<BFloat16>(*kernels, o);
    expect_equal_to_reference<Float16>(*kernels, o);
  }
}

TEST_F(AttentionTiles, AroundTheirEdgesEqualReference) {
  for (const std::int64_t seq : {1, 32, 63, 64, 129})
    for (const float alibi : {0.0F, 8.0F})
      expect_equal_to_reference<BFloat16>(*kernels, {.batch = 2, .seq = seq, .heads = 2, .width = 64, .alibi = alibi});
}

TEST_F(AttentionTiles, OfHeadsThatShareKeysEqualReference) {
  for (const std::int64_t keys : {1, 2, 4})
    expect_equal_to_reference<BFloat16>(
        *kernels, {.batch = 1, .seq = 70, .heads = 4, .width = 128, .key_heads = keys, .alibi = 8});
}

TEST_F(AttentionTiles, WithinWindowsEqualReference) {
  for (const std::int64_t window : {1, 31, 33, 100}) {
    const Attention o{.batch = 1, .seq = 170, .heads = 2, .width = 64, .key_heads = 1, .window = window};
    expect_equal_to_reference<BFloat16>(*kernels, o);
  }
  expect_equal_to_reference<BFloat16>(*kernels,
                                      {.batch = 1, .seq = 150, .heads = 1, .width = 128, .alibi = 8, .window = 40});
}

/// Scores far beyond what an exponential holds, growing and falling along the sequence.
TEST_F(AttentionTiles, OfLargeScoresStayFinite) {
  for (const float sign : {1.0F, -1.0F}) {
    Inputs<BFloat16> x{{.batch = 1, .seq = 150, .heads = 1, .width = 64}};
    for (std::int64_t i = 0; i < 150; ++i) {
      x.q[i * 64] = BFloat16(40.0F);
      x.k[i * 64] = BFloat16(sign * static_cast<float>(i));
    }
    const Results<BFloat16> r = on_device(*kernels, x);
    for (const auto* result : {&r.y, &r.dq, &r.dk, &r.dv})
      for (const BFloat16 value : result->data) ASSERT_TRUE(std::isfinite(static_cast<float>(value)));
  }
}

TEST_F(AttentionTiles, DoNotSeeTheFuture) {
  Inputs<BFloat16> x{{.batch = 1, .seq = 130, .heads = 1, .width = 64}};
  const Results<BFloat16> before = on_device(*kernels, x);
  for (std::int64_t i = 71 * 64; i < x.k.size(); ++i) x.k[i] = x.v[i] = BFloat16(1e3F);
  const Results<BFloat16> after = on_device(*kernels, x);
  for (std::int64_t i = 0; i < 71 * 64; ++i) ASSERT_EQ(before.y[i].bits, after.y[i].bits) << i;
}

}  // namespace
}  // namespace foreshard::kernels::cuda
