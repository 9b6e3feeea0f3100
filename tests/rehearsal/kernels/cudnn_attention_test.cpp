// Attention by cuDNN against the reference in double.
#include "rehearsal/kernels/cudnn_attention.hpp"

namespace foreshard::kernels::cuda {
namespace {

using T = BFloat16;

/// Of heads that share keys cuDNN rounds what each adds to a gradient, besides the sum.
double allowed_of(const Attention& o) { return (o.group() > 1 ? 4 : 2) * allowed<T>; }

template <class U>
Array<U> values_of(const DeviceArray<U>& array) {
  Array<U> values;
  values.data = array.values();
  return values;
}

void expect_equal_to_reference(const Case& c) {
  const auto reference = make_reference();
  const Doubles q(c.host_q), k(c.packed ? Array<T>() : c.host_k), v(c.packed ? Array<T>() : c.host_v), dy(c.host_dy);
  Doubles y(c.inner), lse(c.o.batch * c.o.heads * c.o.seq), dq(q.size()), dk(k.size()), dv(v.size());
  reference->attention(c.o, q, k, v, y, lse);
  EXPECT_LE(error(values_of(c.lse), lse), float_error);
  EXPECT_LE(error(values_of(c.y), y), 2 * allowed<T>);
  reference->attention_backward(c.o, dy, q, k, v, Doubles(values_of(c.y)), lse, dq, dk, dv);
  EXPECT_LE(error(values_of(c.dq), dq), allowed_of(c.o));
  EXPECT_LE(error(values_of(c.dk), dk), allowed_of(c.o));
  EXPECT_LE(error(values_of(c.dv), dv), allowed_of(c.o));
}

TEST_F(ByCudnn, EqualsReference) {
  const Attention shapes[] = {{.batch = 3, .seq = 150, .heads = 2, .width = 64},
                              {.batch = 1, .seq = 130, .heads = 4, .width = 128, .key_heads = 2},
                              {.batch = 2, .seq = 77, .heads = 2, .width = 64, .causal = false, .scaled = false},
                              {.batch = 1, .seq = 200, .heads = 2, .width = 64, .key_heads = 1, .window = 50}};
  for (const Attention& o : shapes) {
    SCOPED_TRACE(testing::Message() << "seq " << o.seq << " width " << o.width << " window " << o.window);
    EXPECT_PLAN(o);
    for (const bool packed : {false, true}) {
      if (packed && o.group() > 1) continue;
      const Case c(o, packed);
      c.both(*kernels);
      expect_equal_to_reference(c);
    }
  }
}

TEST_F(ByCudnn, GivesTheSameBitsEveryTime) {
  const Attention o{.batch = 2, .seq = 256, .heads = 2, .width = 64};
  EXPECT_PLAN(o);
  const Case once(o, true), again(o, true);
  once.both(*kernels);
  again.both(*kernels);
  EXPECT_EQ(bits_of(once), bits_of(again));
}

TEST_F(ByCudnn, MayBeCaptured) {
  const Attention o{.batch = 2, .seq = 64, .heads = 2, .width = 64};
  EXPECT_PLAN(o);
  const Case at_once(o, true), replayed(o, true);
  at_once.both(*kernels);
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  replayed.both(*kernels);
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t runnable = nullptr;
  check(cudaGraphInstantiate(&runnable, graph, 0), "cudaGraphInstantiate");
  check(cudaGraphLaunch(runnable, stream), "cudaGraphLaunch");
  EXPECT_EQ(bits_of(at_once), bits_of(replayed));
  cudaGraphExecDestroy(runnable);
  cudaGraphDestroy(graph);
}

TEST_F(ByCudnn, RunsOurOwnKernelsAgainWhenToldSo) {
  const Attention o{.batch = 1, .seq = 40, .heads = 2, .width = 64};
  const Case before(o, false), after(o, false);
  before.both(*kernels);
  EXPECT_PLAN(o);
  EXPECT_FALSE(kernels->set_attention_by_cudnn(o, DType::bf16, false));
  after.both(*kernels);
  EXPECT_EQ(bits_of(before), bits_of(after));
}

TEST_F(ByCudnn, RefusesWhatItCannotDo) {
  EXPECT_FALSE(kernels->set_attention_by_cudnn({.batch = 1, .seq = 40, .heads = 2, .width = 64}, DType::f32, true));
  EXPECT_FALSE(
      kernels->set_attention_by_cudnn({.batch = 1, .seq = 40, .heads = 2, .width = 64, .alibi = 8}, DType::bf16, true));
}

}  // namespace
}  // namespace foreshard::kernels::cuda
