// What a user may get wrong: one clear message, the documented exit code, no hang on any rank, nothing left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "command.hpp"
#include "train/data_shard.hpp"

namespace foreshard::faults {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class BadInput : public testing::Test {
 protected:
  Result train(const std::string& arguments, int ranks = 2) { return run(training(ranks, data.path(), arguments)); }

  /// The run ended with `code` and said one thing, once.
  template <class Matcher>
  void expect_refused(const Result& result, int code, const Matcher& says) {
    EXPECT_EQ(result.exit_code, code) << result.output;
    EXPECT_THAT(result.output, says);
    const std::regex block("error: ");
    const auto blocks =
        std::distance(std::sregex_iterator(result.output.begin(), result.output.end(), block), std::sregex_iterator());
    EXPECT_EQ(blocks, 1) << result.output;
  }

  std::string shard(const char* name) const { return (data.path() / name).string(); }

  DataFolder data;
};

TEST_F(BadInput, AGoodRunEndsWell) {
  const Result result = train("--data.val_path=" + shard("text_val.bin"));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("step     1/1"), HasSubstr("val step 1")));
}

/// Sizes that do not divide are sharded all the same, and the run says that it does.
TEST_F(BadInput, OddSizesAreNoReasonNotToShard) {
  const Result result = train("--model.width=15 --model.heads=3 --model.vocab_size=257", 3);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("shard degree 3"));
  const auto record = nlohmann::json::parse(std::ifstream(data.path() / "runs/train/latest/run.json"));
  EXPECT_EQ(record["shard_degree"], 3);
}

TEST_F(BadInput, AMissingFileIsNamed) {
  expect_refused(train("--data.path=/nowhere/text.bin"), 5, HasSubstr("/nowhere/text.bin"));
}

TEST_F(BadInput, ATruncatedShardSaysBothSizes) {
  std::filesystem::resize_file(shard("text_train.bin"), 1024 + 2 * 2999);
  expect_refused(train(""), 5, AllOf(HasSubstr("text_train.bin"), HasSubstr("7,024"), HasSubstr("7,022")));
}

TEST_F(BadInput, AForeignFileIsRefused) {
  std::ofstream(shard("text_train.bin")) << std::string(5000, 'x');
  expect_refused(train(""), 5, HasSubstr("text_train.bin"));
}

TEST_F(BadInput, ATokenBeyondTheVocabularyIsNamedOnceThoughOneRankFindsIt) {
  train::write_shard(shard("a_train.bin"), std::vector<std::uint16_t>(2000, 7));
  train::write_shard(shard("b_train.bin"), std::vector<std::uint16_t>(2000, 300));  // checked by rank 1
  expect_refused(train("--data.path='" + shard("[ab]_train.bin") + "'"), 5,
                 AllOf(HasSubstr("b_train.bin"), HasSubstr("300"), HasSubstr("256")));
}

TEST_F(BadInput, AShortShardSaysHowManyTokensAreNeeded) {
  train::write_shard(shard("text_train.bin"), std::vector<std::uint16_t>(20, 7));
  expect_refused(train(""), 5, AllOf(HasSubstr("20"), HasSubstr("33")));
}

TEST_F(BadInput, HeadsMustDivideTheWidth) {
  expect_refused(train("--model.heads=5"), 2, AllOf(HasSubstr("model.heads is 5"), HasSubstr("64")));
}

TEST_F(BadInput, AnUnknownKeyOffersTheNearest) {
  expect_refused(train("--train.stepz=3"), 2, AllOf(HasSubstr("train.stepz"), HasSubstr("train.steps")));
}

TEST_F(BadInput, AMeshThatDoesNotFitTheWorld) {
  expect_refused(train("--parallel.shard_degree=3"), 2, AllOf(HasSubstr("3"), HasSubstr("2")));
}

TEST_F(BadInput, AllConfigurationErrorsAtOnce) {
  expect_refused(train("--model.heads=5 --parallel.prefetch=maybe --train.steps=0"), 2,
                 AllOf(HasSubstr("parallel.prefetch"), HasSubstr("train.steps")));
}

TEST_F(BadInput, AnExistingTraceIsNotOverwritten) {
  std::ofstream(shard("trace.h5")) << "precious";
  expect_refused(train("--trace.file=" + shard("trace.h5")), 2, HasSubstr("trace.h5"));
  std::ifstream file(shard("trace.h5"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "precious");
}

TEST_F(BadInput, ARunFolderThatCannotBeMade) {
  std::ofstream(shard("file")) << "x";
  expect_refused(train("--run.dir=" + shard("file")), 2, HasSubstr("file"));
}

TEST_F(BadInput, RanksWithAnotherConfigurationAreNamed) {
  const std::string both = fmt::format("{} 1 {} : -n 1 {}", FORESHARD_MPIRUN, program(data.path(), ""),
                                       program(data.path(), "--train.seed=5 --engine.threads=1"));
  expect_refused(run(both), 2,
                 AllOf(HasSubstr("rank(s) 1 differ"), HasSubstr("rank 0: train.seed = 1234"),
                       HasSubstr("rank 1: train.seed = 5")));
}

TEST_F(BadInput, ProcessesThatEachThinkTheyAreAloneSayHowToStart) {
  expect_refused(run("env SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 " + program(data.path(), "")), 2,
                 AllOf(HasSubstr("announces 2 ranks (SLURM_STEP_NUM_TASKS), but MPI has 1"), HasSubstr("mpirun")));
}

TEST_F(BadInput, ADivergedRunStopsAndSaysWhere) {
  expect_refused(train("--train.steps=20 --optimizer.lr=1e30 --train.max_norm=0 --lr_scheduler.warmup_steps=0"), 1,
                 HasSubstr("diverged"));
}

TEST_F(BadInput, ADivergedRunSaysWhoseLossItWas) {
  expect_refused(train("--train.steps=20 --optimizer.lr=1e30 --train.max_norm=0 --lr_scheduler.warmup_steps=0"), 1,
                 AllOf(HasSubstr("the loss of rank 0 in micro-batch 0 (sequence"), HasSubstr("the gradient of "),
                       HasSubstr("train.on_nonfinite = skip")));
}

TEST_F(BadInput, ADivergedRunMayGoOnWithoutItsBadSteps) {
  const Result result = train("--train.steps=4 --optimizer.lr=1e30 --train.max_norm=0 --train.on_nonfinite=skip");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("skipped, nothing was updated: the loss of rank 0"), HasSubstr("4/4")));
}

TEST_F(BadInput, ARunThatSkipsAllItsStepsEnds) {
  const std::string diverged = "--train.steps=9 --optimizer.lr=1e30 --train.max_norm=0 --train.on_nonfinite=skip ";
  expect_refused(train(diverged + "--lr_scheduler.warmup_steps=0 --train.max_skips=3"), 1,
                 AllOf(HasSubstr("step 4: 3 steps in a row were skipped"), HasSubstr("train.max_skips"),
                       HasSubstr("nothing was updated since step 1")));
}

TEST_F(BadInput, AGradientThatNoLossScaleFitsEndsTheRun) {
  expect_refused(train("--train.steps=9 --train.loss_scale=dynamic --train.max_skips=2 --precision.param=fp16 "
                       "--precision.reduce=fp16 --optimizer.lr=1e30 --lr_scheduler.warmup_steps=0 --train.max_norm=0 "
                       "--train.on_nonfinite=skip"),
                 1, AllOf(HasSubstr("2 steps in a row were skipped"), HasSubstr("the loss scale now ")));
}

TEST_F(BadInput, AnOptimizerThatNeedsWholeTensorsIsRefused) {
  expect_refused(train("--optimizer.name=lamb"), 2, HasSubstr("needs the norm of each whole parameter"));
}

TEST_F(BadInput, NesterovWithoutMomentumIsRefused) {
  expect_refused(train("--optimizer.name=sgd --optimizer.nesterov=true"), 2, HasSubstr("optimizer.momentum is 0"));
}

TEST_F(BadInput, AGroupThatMatchesNothingIsNamed) {
  expect_refused(train("--optimizer.groups='*.gamma:weight_decay=0'"), 2, HasSubstr("`*.gamma` matches no parameter"));
}

TEST_F(BadInput, AKilledRankEndsTheJob) {
  const Result result =
      run("sh -c \"" + training(2, data.path(), "--train.steps=1000000 --metrics.log_freq=1000000") +
          " & sleep 3; pkill -9 -n -f 'foreshard-train.*" + data.path().filename().string() + "'; wait \\$!\"");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.exit_code, 124) << "the other rank hung";
  EXPECT_LT(result.seconds, 30) << "ended, but not quickly";
}

}  // namespace
}  // namespace foreshard::faults
