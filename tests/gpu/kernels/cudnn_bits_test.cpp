// Whether the gradients of cuDNN's plans that are taken for deterministic are: many blocks of keys add to each dq.
#include "rehearsal/kernels/cudnn_attention.hpp"

namespace foreshard::kernels::cuda {
namespace {

TEST_F(ByCudnn, GivesTheSameBitsAtTheSizesOfModels) {
  constexpr int repeats = 10;
  const Attention shapes[] = {{.batch = 4, .seq = 1024, .heads = 12, .width = 64},
                              {.batch = 2, .seq = 1024, .heads = 8, .width = 128, .key_heads = 2}};
  for (const Attention& o : shapes) {
    SCOPED_TRACE(testing::Message() << "width " << o.width);
    EXPECT_PLAN(o);
    const Case c(o, o.group() == 1);
    c.both(*kernels);
    const auto first = bits_of(c);
    for (int repeat = 0; repeat < repeats; ++repeat) {
      c.both(*kernels);
      ASSERT_EQ(bits_of(c), first) << "repeat " << repeat;
    }
  }
}

}  // namespace
}  // namespace foreshard::kernels::cuda
