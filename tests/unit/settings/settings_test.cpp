#include "plan/settings.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace foreshard::plan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Settings settings_of(std::vector<const char*> words, int world_size) {
  Config config("foreshard-test");
  add_plan_keys(config);
  words.insert(words.begin(), "foreshard-test");
  config.parse(static_cast<int>(words.size()), words.data());
  return read_settings(config, world_size);
}

std::string problems_of(std::vector<const char*> words, int world_size) {
  try {
    settings_of(std::move(words), world_size);
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(Settings, DefaultIsFullShardOfGpt2OverAllRanks) {
  const Settings settings = settings_of({}, 4);
  EXPECT_EQ(model::dimensions(settings.model).width, 768);
  EXPECT_EQ(settings.batch.seq, 1024);
  EXPECT_EQ(settings.batch.batch, 1);
  EXPECT_EQ(settings.mesh.shard_degree(), 4);
  EXPECT_EQ(settings.mesh.replicas, 1);
  EXPECT_EQ(settings.schedule.micro_batches, 1);
  EXPECT_EQ(settings.schedule.gather_limit, 2);
  EXPECT_EQ(settings.step_tokens(), 4096);
}

TEST(Settings, KeysOverrideThePreset) {
  const Settings settings =
      settings_of({"--model.preset=byte-tiny", "--model.layers=6", "--model.width=192", "--model.heads=6",
                   "--model.vocab_size=2048", "--model.tied_head=false", "--train.seq_len=128"},
                  2);
  EXPECT_EQ(model::dimensions(settings.model).layers, 6);
  EXPECT_EQ(model::dimensions(settings.model).width, 192);
  EXPECT_EQ(model::dimensions(settings.model).heads, 6);
  EXPECT_EQ(model::dimensions(settings.model).vocab_size, 2048);
  EXPECT_EQ(model::dimensions(settings.model).max_seq_len, 256) << "the preset's";
  EXPECT_FALSE(std::get<model::GptConfig>(settings.model).tied_head);
  EXPECT_EQ(settings.batch.seq, 128);
}

TEST(Settings, NoShardIsReplicasOnly) {
  const Settings settings = settings_of({"--parallel.strategy=no_shard"}, 3);
  EXPECT_EQ(settings.mesh.shard_degree(), 1);
  EXPECT_EQ(settings.mesh.replicas, 3);
}

TEST(Settings, GlobalBatchBecomesMicroBatches) {
  const Settings settings = settings_of({"--train.local_batch_size=4", "--train.global_batch_size=24"}, 3);
  EXPECT_EQ(settings.schedule.micro_batches, 2);
  EXPECT_EQ(settings.global_batch(), 24);
}

TEST(Settings, ScheduleKeys) {
  const Settings settings =
      settings_of({"--parallel.prefetch=post", "--parallel.prefetch_depth=3", "--parallel.forward_prefetch=0",
                   "--parallel.limit=unlimited", "--parallel.reduce_limit=1"},
                  2);
  EXPECT_EQ(settings.schedule.prefetch, BackwardPrefetch::post);
  EXPECT_EQ(settings.schedule.prefetch_depth, 3);
  EXPECT_EQ(settings.schedule.forward_prefetch, 0);
  EXPECT_EQ(settings.schedule.gather_limit, unlimited);
  EXPECT_EQ(settings.schedule.reduce_limit, 1);
}

TEST(Settings, DegreesThatAgreeAreAccepted) {
  EXPECT_EQ(problems_of({"--parallel.shard_degree=4", "--parallel.replicate_degree=1"}, 4), "");
  EXPECT_EQ(
      problems_of({"--parallel.strategy=no_shard", "--parallel.shard_degree=1", "--parallel.replicate_degree=4"}, 4),
      "");
}

TEST(Settings, AWorldThatDoesNotFitTheMeshNamesBothAndTheNearest) {
  const std::string text = problems_of({"--parallel.shard_degree=3"}, 4);
  EXPECT_THAT(
      text,
      HasSubstr("parallel.shard_degree = 3 and parallel.replicate_degree = 1 multiply to 3, but there are 4 ranks"));
  EXPECT_THAT(text, HasSubstr("nearest mesh that fits: parallel.shard_degree = 4 and parallel.replicate_degree = 1"));
  EXPECT_THAT(problems_of({"--parallel.shard_degree=0"}, 4),
              HasSubstr("parallel.shard_degree = 0: expected at least 1"));
}

TEST(Settings, AHybridDegreeThatDoesNotDivideTheWorldIsNamedAlone) {
  for (const std::string asked : {"shard_degree=3", "shard_degree=16", "replicate_degree=3"}) {
    const std::string flag = "--parallel." + asked;
    const std::string text = problems_of({"--parallel.strategy=hybrid_shard", flag.c_str()}, 8);
    const auto equals = flag.find('=');
    EXPECT_THAT(text, HasSubstr(flag.substr(2, equals - 2) + " = " + flag.substr(equals + 1) +
                                " does not divide the 8 ranks; nearest mesh that fits"));
  }
  EXPECT_THAT(
      problems_of({"--parallel.strategy=hybrid_shard", "--parallel.shard_degree=2", "--parallel.replicate_degree=2"},
                  8),
      HasSubstr("parallel.shard_degree = 2 and parallel.replicate_degree = 2 multiply to 4"));
}

TEST(Settings, BothDegreesAboveOneAreHybrid) {
  const std::string text = problems_of({"--parallel.shard_degree=2", "--parallel.replicate_degree=2"}, 4);
  EXPECT_THAT(text, HasSubstr("do not agree with parallel.strategy = full_shard; both above 1 is parallel.strategy = "
                              "hybrid_shard or hybrid_shard_grad_op"));
}

TEST(Settings, HybridTakesTheOtherDegreeFromTheWorld) {
  for (const char* degree : {"--parallel.shard_degree=2", "--parallel.replicate_degree=4"}) {
    const Settings settings = settings_of({"--parallel.strategy=hybrid_shard", degree}, 8);
    EXPECT_EQ(settings.mesh.shard_degree(), 2) << degree;
    EXPECT_EQ(settings.mesh.replicas, 4) << degree;
  }
}

TEST(Settings, HybridNeedsADegreeThatDividesTheWorld) {
  EXPECT_THAT(problems_of({"--parallel.strategy=hybrid_shard"}, 4), HasSubstr("needs parallel.shard_degree"));
  EXPECT_THAT(problems_of({"--parallel.strategy=hybrid_shard", "--parallel.shard_degree=3"}, 8),
              HasSubstr("nearest mesh that fits: parallel.shard_degree = 2 and parallel.replicate_degree = 4"));
}

TEST(Settings, StrategiesSayWhatIsKept) {
  EXPECT_EQ(settings_of({}, 4).schedule.keep, Keep::visit);
  EXPECT_EQ(settings_of({"--parallel.strategy=shard_grad_op"}, 4).schedule.keep, Keep::micro_batch);
  const Settings zero1 = settings_of({"--parallel.strategy=zero1"}, 4);
  EXPECT_EQ(zero1.schedule.keep, Keep::step);
  EXPECT_EQ(zero1.schedule.accumulation, Accumulation::no_sync);
  EXPECT_EQ(zero1.mesh.shard_degree(), 4);
}

TEST(Settings, ReshardingToASmallerGroupSplitsTheShardGroup) {
  const Settings two = settings_of({"--parallel.reshard_after_forward=2"}, 8);
  EXPECT_EQ(two.mesh.outer, 4);
  EXPECT_EQ(two.mesh.inner, 2);
  EXPECT_EQ(settings_of({"--parallel.reshard_after_forward=1"}, 8).schedule.keep, Keep::micro_batch);
  EXPECT_EQ(settings_of({"--parallel.reshard_after_forward=8"}, 8).mesh.outer, 1) << "the whole group";
  EXPECT_THAT(problems_of({"--parallel.reshard_after_forward=3"}, 8), HasSubstr("divides the shard degree 8"));
  EXPECT_THAT(problems_of({"--parallel.reshard_after_forward=2", "--parallel.strategy=no_shard"}, 8),
              HasSubstr("keeps parameters whole"));
}

TEST(Settings, AccumulationModes) {
  EXPECT_EQ(settings_of({"--parallel.accumulation=no_sync"}, 4).schedule.accumulation, Accumulation::no_sync);
  EXPECT_THAT(problems_of({"--parallel.accumulation=reduce_scatter"}, 4), HasSubstr("only the hybrid strategies"));
}

TEST(Settings, DegreesMustAgreeWithTheStrategy) {
  EXPECT_THAT(
      problems_of({"--parallel.strategy=no_shard", "--parallel.shard_degree=4", "--parallel.replicate_degree=1"}, 4),
      HasSubstr("do not agree with parallel.strategy = no_shard"));
}

TEST(Settings, AnUnknownStrategyIsRefusedWithTheNearest) {
  EXPECT_THAT(problems_of({"--parallel.strategy=full_shrad"}, 4), HasSubstr("Did you mean `full_shard`?"));
}

TEST(Settings, LimitsAreCountsSizesOrUnlimited) {
  EXPECT_EQ(settings_of({"--parallel.limit=64MiB"}, 1).schedule.gather_limit_bytes, 64 << 20);
  EXPECT_EQ(settings_of({"--parallel.limit=64MiB"}, 1).schedule.gather_limit, unlimited);
  EXPECT_THAT(problems_of({"--parallel.limit=2.5"}, 1), HasSubstr("parallel.limit = 2.5: expected a number of units"));
  EXPECT_THAT(problems_of({"--parallel.limit=0"}, 1),
              HasSubstr("expected a number of units of at least 1, a size such as 64MiB, or unlimited"));
  EXPECT_THAT(problems_of({"--parallel.reduce_limit=few"}, 1), HasSubstr("parallel.reduce_limit = few"));
}

TEST(Settings, UnitsFollowAPolicyWithItsArgument) {
  const auto wrap_of = [](const char* policy) { return settings_of({policy}, 2).schedule.wrap; };
  EXPECT_EQ(wrap_of("--units.policy=block").policy, Wrap::Policy::block);
  EXPECT_EQ(wrap_of("--units.policy=blocks:3").count, 3);
  EXPECT_EQ(wrap_of("--units.policy=size:100000000").count, 100'000'000);
  EXPECT_THAT(wrap_of("--units.policy=class:attn, mlp").names, testing::ElementsAre("attn", "mlp"));
  EXPECT_EQ(wrap_of("--units.policy=list:h.0,wte").policy, Wrap::Policy::list);
  const Wrap wrap = settings_of({"--units.frozen=*.bias, wte.*", "--units.ignored=ln_f.*",
                                 "--units.override=u1:strategy=shard_grad_op; h.3.*:strategy=no_shard"},
                                2)
                        .schedule.wrap;
  EXPECT_THAT(wrap.frozen, testing::ElementsAre("*.bias", "wte.*"));
  EXPECT_THAT(wrap.ignored, testing::ElementsAre("ln_f.*"));
  ASSERT_EQ(wrap.overrides.size(), 2U);
  EXPECT_EQ(wrap.overrides[0].keep, Keep::micro_batch);
  EXPECT_EQ(wrap.overrides[1].glob, "h.3.*");
  EXPECT_TRUE(wrap.overrides[1].replicated);
}

TEST(Settings, UnitsThatCannotBeReadOrDoNotFitAreRefusedWithTheNearest) {
  EXPECT_THAT(problems_of({"--units.policy=blcks:2"}, 2), HasSubstr("Did you mean `blocks`?"));
  EXPECT_THAT(problems_of({"--units.policy=size:none"}, 2), HasSubstr("'none' is not a number of at least 1"));
  EXPECT_THAT(problems_of({"--units.policy=none:2"}, 2), HasSubstr("'2' has no meaning here"));
  EXPECT_THAT(problems_of({"--units.policy=list:"}, 2), HasSubstr("no names"));
  EXPECT_THAT(problems_of({"--units.policy=list:h.0.atn"}, 2), HasSubstr("Did you mean `h.0.attn`?"));
  EXPECT_THAT(problems_of({"--units.override=u1"}, 2), HasSubstr("expected GLOB:strategy=NAME"));
  EXPECT_THAT(problems_of({"--units.override=u1:strategy=hybrid"}, 2), HasSubstr("one of full_shard"));
  EXPECT_THAT(problems_of({"--units.frozen=h.99.*"}, 2), HasSubstr("units.frozen: 'h.99.*' matches nothing"));
}

TEST(Settings, AGlobalBatchThatDoesNotDivideNamesTheNearest) {
  const std::string text = problems_of({"--train.local_batch_size=4", "--train.global_batch_size=30"}, 3);
  EXPECT_THAT(
      text, HasSubstr("train.global_batch_size = 30 is not a multiple of train.local_batch_size × ranks = 4 × 3 = 12"));
  EXPECT_THAT(text, HasSubstr("nearest: 24 or 36"));
  EXPECT_THAT(problems_of({"--train.global_batch_size=2"}, 3), HasSubstr("nearest: 3"));
}

TEST(Settings, SizesThatLeaveSixtyFourBitsAreRefusedAndNamed) {
  const char* largest = "9223372036854775807";
  for (const std::string key : {"model.layers", "model.vocab_size", "model.max_seq_len", "model.ffn_width"})
    EXPECT_THAT(problems_of({("--" + key + "=" + largest).c_str()}, 2), HasSubstr("expected at most")) << key;
  EXPECT_THAT(problems_of({"--model.width=4611686018427387904"}, 2), HasSubstr("expected at most"));
  EXPECT_THAT(problems_of({"--train.local_batch_size=4611686018427387904"}, 2), HasSubstr("expected at most"));
  EXPECT_THAT(problems_of({"--train.local_batch_size=1000000"}, 1 << 24), HasSubstr("tokens, expected at most"));
}

TEST(Settings, MoreMicroBatchesThanThereMayBeAreCounted) {
  EXPECT_THAT(problems_of({"--train.global_batch_size=9223372036854775807"}, 1),
              HasSubstr("makes 9223372036854775807 micro-batches"));
}

TEST(Settings, AReductionInAHalfNeedsParametersInTheSame) {
  for (const auto& [parameter, reduction] : {std::pair{"fp32", "bf16"}, {"fp16", "bf16"}, {"bf16", "fp16"}}) {
    const std::string param = fmt::format("--precision.param={}", parameter);
    const std::string reduce = fmt::format("--precision.reduce={}", reduction);
    EXPECT_THAT(problems_of({param.c_str(), reduce.c_str()}, 2),
                HasSubstr(fmt::format("precision.reduce = {} with precision.param = {}", reduction, parameter)));
  }
  EXPECT_EQ(problems_of({"--precision.param=fp16", "--precision.reduce=fp16"}, 2), "");
  EXPECT_EQ(problems_of({"--precision.param=bf16", "--precision.reduce=fp32"}, 2), "");
}

TEST(Settings, ParametersKeptInBf16AreGatheredInIt) {
  for (const char* parameter : {"fp32", "fp16"}) {
    const std::string param = fmt::format("--precision.param={}", parameter);
    EXPECT_THAT(problems_of({"--precision.master=bf16", param.c_str()}, 2),
                HasSubstr(fmt::format("precision.master = bf16 with precision.param = {}", parameter)));
  }
  EXPECT_THAT(problems_of({"--precision.master=fp16"}, 2), HasSubstr("precision.master"));
  EXPECT_EQ(problems_of({"--precision.master=bf16", "--precision.param=bf16"}, 2), "");
  EXPECT_EQ(problems_of({"--precision.master=fp32", "--precision.param=fp16"}, 2), "");
}

TEST(Settings, AllProblemsComeAtOnce) {
  const std::string text = problems_of({"--model.preset=gpt2-xxl", "--model.heads=7", "--parallel.shard_degree=3",
                                        "--train.global_batch_size=5", "--parallel.accumulation=reduce_scatter"},
                                       4);
  EXPECT_THAT(text, HasSubstr("5 problems on 4 rank(s):\n  1. "));
  EXPECT_THAT(text, HasSubstr("gpt2-xl"));
  EXPECT_THAT(text, HasSubstr("7"));
  EXPECT_THAT(text, HasSubstr("\n  5. "));
  EXPECT_THAT(text, Not(HasSubstr("\n  6. ")));
}

}  // namespace
}  // namespace foreshard::plan
