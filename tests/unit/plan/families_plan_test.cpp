// Steps of MPT, T5, ViT and of a profile: what is derived from their operators, under all that a plan may be asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model.hpp"
#include "plan/build.hpp"
#include "plan/query.hpp"

namespace foreshard::plan {
namespace {

const model::MptConfig mpt{.layers = 3, .width = 16, .heads = 4, .vocab_size = 31, .max_seq_len = 8};
const model::T5Config t5{.layers = 3,
                         .width = 16,
                         .heads = 4,
                         .vocab_size = 31,
                         .decoder_layers = 2,
                         .head_width = 6,
                         .ffn_width = 24,
                         .feed_forward = model::T5Config::FeedForward::gated_gelu};
const model::VitConfig vit{
    .layers = 3, .width = 16, .heads = 4, .ffn_width = 24, .patches = 9, .patch_values = 12, .classes = 5};
const model::VitConfig deepvit{.layers = 3,
                               .width = 16,
                               .heads = 4,
                               .ffn_width = 24,
                               .patches = 9,
                               .patch_values = 12,
                               .classes = 5,
                               .reattention = true};
const model::ProfileConfig profile{.units = {{.name = "a",
                                              .parameters = 30,
                                              .forward_flops = 100,
                                              .backward_flops = 200,
                                              .activation_bytes = 40,
                                              .output_values = 7},
                                             {.name = "b",
                                              .parameters = 50,
                                              .forward_flops = 10,
                                              .backward_flops = 20,
                                              .activation_bytes = 8,
                                              .output_values = 2},
                                             {.name = "c", .forward_flops = 3, .output_values = 2}},
                                   .head = {.name = "head", .output_values = 2}};

Plan plan_of(const model::Config& model, const ScheduleOptions& options = {}) {
  return build_plan(model::build(model, {2, 8}), {.inner = 2}, options);
}

std::int64_t count(const Plan& plan, OpKind kind) {
  return static_cast<std::int64_t>(find(plan, plan.segments.front(), {kind}).size());
}

TEST(FamiliesPlan, EveryOperatorHasItsDerivative) {
  EXPECT_EQ(count(plan_of(mpt), OpKind::gelu_exact_backward), 3);
  const Plan of_t5 = plan_of(t5);
  EXPECT_EQ(count(of_t5, OpKind::full_attention_backward), 3 + 2);
  EXPECT_EQ(count(of_t5, OpKind::attention_backward), 2);
  EXPECT_EQ(count(of_t5, OpKind::relative_bias_backward), 2);
  EXPECT_EQ(count(of_t5, OpKind::geglu_backward), 5);
  EXPECT_EQ(count(of_t5, OpKind::embedding_backward), 2) << "of encoder and decoder, into one table";
  const Plan of_vit = plan_of(vit);
  EXPECT_EQ(count(of_vit, OpKind::full_attention_backward), 3);
  EXPECT_EQ(count(of_vit, OpKind::image_tokens_backward), 1);
  EXPECT_EQ(count(of_vit, OpKind::first_token_backward), 1);
  EXPECT_EQ(count(of_vit, OpKind::linear_weight_grad), 3 * 6 + 2);
  EXPECT_EQ(count(of_vit, OpKind::linear_input_grad), 3 * 6 + 1) << "images have no gradient";
  const Plan of_profile = plan_of(profile);
  EXPECT_EQ(count(of_profile, OpKind::opaque_backward), 4);
}

// What the encoder made gets a gradient from every block of the decoder before the encoder's own backward begins.
TEST(FamiliesPlan, EveryDecoderBlockAddsToTheEncodersGradient) {
  const Plan plan = plan_of(t5);
  const auto backward = find(plan, plan.segments.front(), {OpKind::full_attention_backward});
  std::vector<std::string> units;
  for (const OpId id : backward) units.push_back(plan.unit_names[plan.ops[id.value].unit.value]);
  EXPECT_THAT(units, testing::ElementsAre("u4", "u3", "u2", "u1", "u0"));
}

TEST(FamiliesPlan, ALayerNormWithoutBiasHasNoGradientOfOne) {
  const Plan plan = plan_of(mpt);
  for (const OpId id : find(plan, plan.segments.front(), {OpKind::layer_norm_backward})) {
    const auto outputs = plan.outputs(plan.ops[id.value]);
    ASSERT_EQ(outputs.size(), 3U);
    EXPECT_TRUE(outputs[1].present());
    EXPECT_FALSE(outputs[2].present());
  }
}

// The log Σ exp is all that backward reads beside operands: no weight of a query and a key is kept.
TEST(FamiliesPlan, ReattentionKeepsNoMatrixOfWeights) {
  const Plan plan = plan_of(deepvit);
  const auto backward = find(plan, plan.segments.front(), {OpKind::reattention_backward});
  ASSERT_EQ(backward.size(), 3U);
  for (const OpId id : backward) {
    const auto inputs = plan.inputs(plan.ops[id.value]);
    ASSERT_EQ(inputs.size(), 8U);
    for (const Operand& input : inputs) EXPECT_LE(input.size_bytes, 4 * 2 * 10 * 16);
    EXPECT_EQ(inputs.back().size_bytes, 4 * 2 * 4 * 10);
  }
}

TEST(FamiliesPlan, ReattentionMakesOnlyTheGradientsThatAreWanted) {
  ScheduleOptions options;
  options.wrap.frozen = {"embeddings.*", "layers.0.layernorm_before.*", "layers.0.attention.q_proj.*",
                         "layers.0.attention.v_proj.*", "*.reattn_norm.*"};
  const Plan plan = plan_of(deepvit, options);
  const OpId first = find(plan, plan.segments.front(), {OpKind::reattention_backward}).back();
  std::vector<bool> made;
  for (const Operand& output : plan.outputs(plan.ops[first.value])) made.push_back(output.present());
  EXPECT_THAT(made, testing::ElementsAre(false, true, false, true, false, false));
}

/// All parameters of a unit lie in its flat parameter, and each of them gets a gradient.
TEST(FamiliesPlan, EveryParameterIsShardedAndGetsAGradient) {
  for (const model::Config& model :
       {model::Config(mpt), model::Config(t5), model::Config(vit), model::Config(deepvit), model::Config(profile)}) {
    const Plan plan = plan_of(model);
    std::int64_t elements = 0;
    for (const FlatParameter& unit : plan.units)
      for (const FlatPiece& piece : unit.pieces) elements += piece.elements;
    EXPECT_EQ(elements, plan.parameters) << model::family_of(model);
    EXPECT_EQ(elements, model::build(model, {2, 8}).parameter_count());
  }
}

TEST(FamiliesPlan, AreBuiltUnderEveryRecomputationPrecisionAndNumberOfMicroBatches) {
  for (const model::Config& model :
       {model::Config(mpt), model::Config(t5), model::Config(vit), model::Config(deepvit), model::Config(profile)})
    for (const Recompute::Mode mode : {Recompute::Mode::none, Recompute::Mode::selective, Recompute::Mode::full})
      for (const int micro_batches : {1, 3}) {
        ScheduleOptions options;
        options.recompute.mode = mode;
        options.recompute.kinds = {OpKind::attention, OpKind::full_attention, OpKind::geglu, OpKind::gelu_exact};
        options.micro_batches = micro_batches;
        options.precision.parameters = DType::bf16;
        const Plan plan = plan_of(model, options);
        EXPECT_GT(plan.arena_bytes, 0) << model::family_of(model);
        const bool recomputes = mode != Recompute::Mode::none;
        const std::int64_t attentions = count(plan, OpKind::full_attention) + count(plan, OpKind::attention);
        if (std::holds_alternative<model::T5Config>(model)) {
          EXPECT_EQ(attentions, recomputes ? 14 : 7);
        }
      }
}

}  // namespace
}  // namespace foreshard::plan
