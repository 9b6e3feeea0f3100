// A Llama-shaped step: what is derived from its operators, and what lowering makes of them.
#include <gtest/gtest.h>

#include "model/llama.hpp"
#include "plan/build.hpp"
#include "plan/query.hpp"

namespace foreshard::plan {
namespace {

constexpr std::int64_t layers = 3;

Plan llama_plan() {
  return build_plan(model::build_llama({.layers = layers,
                                        .width = 16,
                                        .heads = 4,
                                        .vocab_size = 31,
                                        .max_seq_len = 8,
                                        .ffn_width = 24,
                                        .kv_heads = 2},
                                       {2, 8}),
                    {.inner = 2}, {});
}

std::int64_t count(const Plan& plan, OpKind kind) {
  return static_cast<std::int64_t>(find(plan, plan.segments.front(), {kind}).size());
}

TEST(LlamaPlan, EveryOperatorHasItsDerivative) {
  const Plan plan = llama_plan();
  EXPECT_EQ(count(plan, OpKind::rotary), 2 * layers);
  EXPECT_EQ(count(plan, OpKind::rotary_backward), 2 * layers);
  EXPECT_EQ(count(plan, OpKind::swiglu_backward), layers);
  EXPECT_EQ(count(plan, OpKind::attention_backward), layers);
  EXPECT_EQ(count(plan, OpKind::rms_norm_backward), 2 * layers + 1);
  EXPECT_EQ(count(plan, OpKind::linear_weight_grad), 7 * layers + 1);
}

// The sum of a block is normed first in the next block, which is another unit; within a block the two are one kernel.
TEST(LlamaPlan, ResidualSumsAreFusedWithTheNormInTheirUnit) {
  const Plan plan = llama_plan();
  EXPECT_EQ(count(plan, OpKind::add_rms_norm), layers);
  EXPECT_EQ(count(plan, OpKind::rms_norm), layers + 1);
}

// Three projections read one norm, two the other: their gradients are added up element by element, whatever the
// projections' own sizes are.
TEST(LlamaPlan, ElementwiseOpsHaveTheSizesOfTheirResults) {
  const Plan plan = llama_plan();
  EXPECT_EQ(count(plan, OpKind::add), layers + 3 * layers);
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::add && op.kind != OpKind::swiglu_backward && op.kind != OpKind::rotary_backward) continue;
    for (const Operand& output : plan.outputs(op)) EXPECT_EQ(op.sizes.rows * op.sizes.cols * 4, output.size_bytes);
  }
}

TEST(LlamaPlan, AttentionReadsKeysOfSharedHeads) {
  const Plan plan = llama_plan();
  const Op& op = plan.ops[find(plan, plan.segments.front(), {OpKind::attention_backward}).front().value];
  ASSERT_EQ(plan.inputs(op).size(), 6U);
  ASSERT_EQ(plan.outputs(op).size(), 3U);
  EXPECT_EQ(plan.outputs(op)[0].size_bytes, 16 * 16 * 4);
  EXPECT_EQ(plan.outputs(op)[1].size_bytes, 16 * 8 * 4);
  EXPECT_EQ(plan.outputs(op)[2].size_bytes, 16 * 8 * 4);
}

}  // namespace
}  // namespace foreshard::plan
