// Whether cuDNN has plans of the attention of models, on devices that are not there, and how much workspace they take.
#include <gtest/gtest.h>

#include <cstdio>

#include "cuda/cudnn/devices.hpp"
#include "kernels/cuda/cudnn/attention_plans.hpp"
#include "kernels/cuda/cudnn/fused_attention.hpp"
#include "kernels/cuda/cudnn/library.hpp"

namespace foreshard::kernels::cuda::cudnn {
namespace {

constexpr std::int64_t mib = 1 << 20;
constexpr Attention gpt2{.batch = 8, .seq = 1024, .heads = 12, .width = 64},
    llama{.batch = 1, .seq = 4096, .heads = 32, .width = 128, .key_heads = 8};

std::int64_t score_bytes(const Attention& o) { return 2 * o.batch * o.heads * o.seq * o.seq; }

class CudnnPlans : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (!library()) GTEST_SKIP() << "no libcudnn.so.9 is found";
  }
  std::optional<AttentionPlans> find(const Attention& o, Layout layout, std::int64_t workspace_bytes,
                                     DType type = DType::bf16) const {
    const Descriptor properties = properties_of(GetParam());
    auto plans = find_plans({nullptr, &properties}, o, type, layout, workspace_bytes);
    if (plans)
      std::printf("%s: %d heads of %d, %d tokens: forward %lld bytes of workspace, backward %lld in %lld parts\n",
                  GetParam().name, static_cast<int>(o.heads), static_cast<int>(o.width), static_cast<int>(o.seq),
                  static_cast<long long>(plans->forward.workspace_bytes()),
                  static_cast<long long>(plans->row_sum_bytes + plans->backward.workspace_bytes()),
                  static_cast<long long>(plans->backward_parts));
    return plans;
  }
  bool ordered() const { return GetParam().architecture == 100; }
};

TEST_P(CudnnPlans, ThereAreOfModels) {
  for (const auto& [o, layout] : {std::pair(gpt2, Layout::packed), std::pair(llama, Layout::apart)}) {
    const auto plans = find(o, layout, 2048 * mib);
    ASSERT_TRUE(plans);
    EXPECT_EQ(plans->backward_parts, 1);
    EXPECT_GE(plans->backward.workspace_bytes(), ordered() ? 0 : score_bytes(o)) << "dq is not added up in order";
  }
}

/// Of a workspace as trainings have it.
TEST_P(CudnnPlans, GoSequenceBySequenceWhereTheWorkspaceIsSmall) {
  const auto plans = find(gpt2, Layout::packed, 32 * mib);
  ASSERT_TRUE(plans);
  EXPECT_EQ(plans->backward_parts, ordered() ? 1 : 8);
  EXPECT_LE(plans->row_sum_bytes + plans->backward.workspace_bytes(), 32 * mib);
}

TEST_P(CudnnPlans, ThereAreOfOddLengthsWindowsAndBothTypes) {
  const Attention odd{.batch = 2, .seq = 1000, .heads = 4, .width = 64, .key_heads = 2, .window = 100};
  EXPECT_TRUE(find(odd, Layout::apart, 64 * mib));
  EXPECT_TRUE(find({.batch = 2, .seq = 197, .heads = 4, .width = 64, .causal = false, .scaled = false}, Layout::packed,
                   64 * mib, DType::f16));
}

TEST_P(CudnnPlans, AreNullWhereTheyDoNotFit) {
  const Attention long_one{.batch = 1, .seq = 8192, .heads = 32, .width = 128};
  EXPECT_EQ(find(long_one, Layout::packed, mib).has_value(), ordered());
}

INSTANTIATE_TEST_SUITE_P(Devices, CudnnPlans, testing::Values(a100, h100, b200),
                         [](const auto& of) { return "sm_" + std::to_string(of.param.architecture); });

TEST(FusedAttention, IsNullForWhatItCannotDo) {
  const Queue queue{nullptr, nullptr, 64 * mib};
  EXPECT_EQ(find_attention(queue, gpt2, DType::f32, true), nullptr);
  EXPECT_EQ(find_attention(queue, {.batch = 1, .seq = 8, .heads = 2, .width = 8, .alibi = 8}, DType::bf16, true),
            nullptr);
}

/// A handle needs a device.
TEST(FusedAttention, IsNullWithoutADevice) {
  EXPECT_EQ(find_attention({nullptr, nullptr, 64 * mib}, gpt2, DType::bf16, true), nullptr);
}

}  // namespace
}  // namespace foreshard::kernels::cuda::cudnn
