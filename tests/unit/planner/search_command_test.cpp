#include "sim/planner/search_command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "plan/build.hpp"
#include "plan/settings.hpp"
#include "sim/planner/report_search.hpp"
#include "sim/predict.hpp"

namespace foreshard::sim::planner {
namespace {

const std::vector<std::string> small{"search",
                                     "--model.preset=byte-medium",
                                     "--train.seq_len=128",
                                     "--parallel.world_size=16",
                                     "--machine.cluster=dgx-a100",
                                     "--train.global_batch_size=32",
                                     "--search.offload=none",
                                     "--search.threads=2"};

struct Outcome {
  int code = 0;
  std::string printed, error;
};

Outcome run(std::vector<std::string> flags, std::vector<std::string> more = {}) {
  flags.insert(flags.end(), more.begin(), more.end());
  std::vector<const char*> argv;
  for (const std::string& flag : flags) argv.push_back(flag.c_str());
  testing::internal::CaptureStdout();
  Outcome outcome;
  try {
    outcome.code = search_command(static_cast<int>(argv.size()), argv.data());
  } catch (const InputError& error) {
    outcome.code = static_cast<int>(error.code());
    outcome.error = error.what();
  }
  outcome.printed = testing::internal::GetCapturedStdout();
  return outcome;
}

plan::Settings settings_from(const nlohmann::json& keys,
                             std::vector<std::string> model = {"--model.preset=byte-medium"}) {
  Config config("test");
  plan::add_plan_keys(config);
  config.add("parallel.world_size", 1, "");
  std::vector<std::string> flags{"test", "--train.seq_len=128"};
  flags.insert(flags.end(), model.begin(), model.end());
  for (const auto& [key, value] : keys.items()) flags.push_back("--" + key + "=" + value.get<std::string>());
  std::vector<const char*> argv;
  for (const std::string& flag : flags) argv.push_back(flag.c_str());
  config.parse(static_cast<int>(argv.size()), argv.data());
  return plan::read_settings(config, config.get<int>("parallel.world_size")).on_cuda();
}

/// The keys of the best plan, given to `foreshard-plan`, predict what the search found.
void expect_keys_predict(const std::vector<std::string>& users) {
  std::vector<std::string> flags{"--json", "--tokens=1B"}, model{"--model.preset=byte-medium"};
  flags.insert(flags.end(), users.begin(), users.end());
  model.insert(model.end(), users.begin(), users.end());
  const Outcome outcome = run(small, flags);
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto json = nlohmann::json::parse(outcome.printed);
  ASSERT_FALSE(json["pareto"].empty());
  for (const auto& found : json["pareto"]) {
    const plan::Settings settings = settings_from(found["keys"], model);
    const Prediction prediction = predict_on_gpus(
        plan::build_plan(model::build(settings.model, settings.batch), settings.mesh, settings.schedule),
        read_cluster("dgx-a100"));
    EXPECT_EQ(prediction.step_time_s, found["step_time_s"]) << found["command"];
    EXPECT_EQ(prediction.arena_bytes + prediction.process_base_bytes, found["memory_bytes"]);
    EXPECT_NEAR(prediction.tflops_per_device, found["tflops_per_device"].get<double>(), 1e-6);
  }
  EXPECT_EQ(json["best"]["run"]["steps"], std::ceil(1e9 / (32 * 128)));
}

TEST(SearchCommand, ItsKeysPredictWhatItFound) { expect_keys_predict({}); }
TEST(SearchCommand, ItsKeysPredictWhatItFoundOfParametersKeptInBf16) {
  expect_keys_predict({"--precision.master=bf16", "--precision.param=bf16"});
}

/// Nobody computes the gradients of frozen parameters, so they are no useful work.
TEST(SearchCommand, CountsTheUsefulWorkOfAModelThatIsMostlyFrozenAsItsPredictionDoes) {
  const std::vector<std::string> model{"--model.preset=byte-llama-medium", "--model.lora_rank=4"};
  std::vector<std::string> flags{small};
  std::erase_if(flags, [](const std::string& flag) { return flag.starts_with("--model."); });
  flags.insert(flags.end(), model.begin(), model.end());
  const Outcome outcome = run(flags, {"--json", "--search.simulations=20"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto best = nlohmann::json::parse(outcome.printed)["best"];
  const plan::Settings settings = settings_from(best["keys"], model);
  const Prediction prediction =
      predict_on_gpus(plan::build_plan(model::build(settings.model, settings.batch), settings.mesh, settings.schedule),
                      read_cluster("dgx-a100"));
  EXPECT_NEAR(prediction.tflops_per_device, best["tflops_per_device"].get<double>(), 1e-6);
}

TEST(SearchCommand, SaysWhatBecameOfEveryPlan) {
  const auto path = std::filesystem::temp_directory_path() / "foreshard_search_all_plans.csv";
  const Outcome outcome = run(small, {"--json", "--search.all_plans=" + path.string()});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  std::ifstream file(path);
  std::int64_t lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  std::filesystem::remove(path);
  EXPECT_EQ(lines - 1, nlohmann::json::parse(outcome.printed)["plans"].get<std::int64_t>());
}

TEST(SearchCommand, ATableThatCannotBeWrittenIsRefusedBeforeTheSearch) {
  const Outcome outcome = run(small, {"--search.all_plans=/no/such/folder/plans.csv"});
  EXPECT_EQ(outcome.code, static_cast<int>(ExitCode::bad_input));
  EXPECT_EQ(outcome.printed, "");
  EXPECT_THAT(outcome.error, testing::HasSubstr("search.all_plans = /no/such/folder/plans.csv"));
}

TEST(SearchCommand, GoesThroughStepsOfPyTorch) {
  for (const std::string runtime : {"pytorch-fsdp1", "pytorch-fsdp2"}) {
    std::vector<std::string> flags = small;
    std::erase_if(flags, [](const std::string& flag) { return flag.starts_with("--search.offload"); });
    const Outcome outcome = run(flags, {"--json", "--runtime.profile=" + runtime});
    ASSERT_EQ(outcome.code, 0) << outcome.error;
    const auto json = nlohmann::json::parse(outcome.printed);
    EXPECT_EQ(json["runtime"], runtime);
    EXPECT_GT(json["plans"], 50);
    EXPECT_FALSE(json["best"]["keys"].contains("offload.optimizer"));
    EXPECT_GT(json["best"]["error_bars"]["step_time_s"]["pct"], 0);
  }
  EXPECT_THAT(run(small, {"--runtime.profile=pytorch-fsdp2", "--search.offload=optimizer"}).error,
              testing::HasSubstr("search.offload = optimizer: pytorch-fsdp2 has not all of them"));
}

/// DDP and ZeRO have one strategy each, and nothing to prefetch.
TEST(SearchCommand, GoesThroughStepsOfDdpAndOfEachStageOfZero) {
  std::vector<std::string> flags = small;
  std::erase_if(flags, [](const std::string& flag) { return flag.starts_with("--search.offload"); });
  for (const std::string runtime : {"pytorch-ddp", "deepspeed-zero1", "deepspeed-zero2", "deepspeed-zero3"}) {
    const Outcome outcome = run(flags, {"--json", "--runtime.profile=" + runtime});
    ASSERT_EQ(outcome.code, 0) << outcome.error;
    const auto json = nlohmann::json::parse(outcome.printed);
    EXPECT_GE(json["plans"], 4);
    EXPECT_EQ(json["best"]["keys"]["runtime.profile"], runtime);
    EXPECT_FALSE(json["best"]["keys"].contains("parallel.strategy"));
    EXPECT_GT(json["best"]["error_bars"]["step_time_s"]["pct"], 0);
    EXPECT_THAT(run(flags, {"--runtime.profile=" + runtime, "--search.limit=2"}).error,
                testing::HasSubstr("search.limit = 2: " + runtime + " has no such choice"));
  }
}

/// When these reduce, and in what, is not for the user to say.
TEST(SearchCommand, RefusesWhatDdpAndZeroWouldIgnore) {
  EXPECT_THAT(run(small, {"--runtime.profile=deepspeed-zero2", "--parallel.accumulation=no_sync"}).error,
              testing::HasSubstr("parallel.accumulation = no_sync: stage 1 reduces in the last micro-batch"));
  EXPECT_THAT(run(small, {"--runtime.profile=pytorch-ddp", "--precision.param=bf16", "--precision.reduce=bf16"}).error,
              testing::HasSubstr("precision.reduce = bf16: DDP reduces in the type of its parameters, fp32"));
}

TEST(SearchCommand, ComparesProfilesAndLeavesOutValuesThatOneHasNot) {
  const Outcome outcome =
      run(small, {"--json", "--search.profiles=pytorch-ddp,deepspeed-zero2, deepspeed-zero2,pytorch-fsdp2",
                  "--search.accumulation=no_sync", "--search.local_batch_size=1"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto json = nlohmann::json::parse(outcome.printed);
  EXPECT_EQ(json["runtime"], "pytorch-ddp, deepspeed-zero2, pytorch-fsdp2");
  EXPECT_THAT(json["left_out"], testing::ElementsAre("deepspeed-zero2: has no plan of the values to search"));
  EXPECT_TRUE(json["best_by_runtime"]["deepspeed-zero2"].is_null());
  double least = 1e9;
  for (const std::string runtime : {"pytorch-ddp", "pytorch-fsdp2"}) {
    const auto alone =
        nlohmann::json::parse(run(small, {"--json", "--runtime.profile=" + runtime, "--search.accumulation=no_sync",
                                          "--search.local_batch_size=1"})
                                  .printed);
    EXPECT_EQ(json["best_by_runtime"][runtime]["keys"], alone["best"]["keys"]);
    least = std::min(least, alone["best"]["step_time_s"].get<double>());
  }
  EXPECT_EQ(json["best"]["step_time_s"], least);
  EXPECT_THAT(run(small, {"--search.profiles=pytorch-ddp,fsdp3"}).error, testing::HasSubstr("'fsdp3' is no value"));
  EXPECT_THAT(run(small, {"--search.profiles=pytorch-ddp", "--runtime.profile=pytorch-fsdp2"}).error,
              testing::HasSubstr("are both set"));
}

TEST(SearchCommand, WhereAWholeModelDoesNotFitItNamesARuntimeThatShardsIt) {
  const Outcome outcome =
      run({"search", "--model.preset=llama3-8b", "--parallel.world_size=8", "--machine.cluster=dgx-a100",
           "--train.global_batch_size=8", "--train.seq_len=2048", "--runtime.profile=pytorch-ddp"});
  EXPECT_EQ(outcome.code, static_cast<int>(ExitCode::infeasible));
  EXPECT_THAT(outcome.error, testing::HasSubstr("none of"));
  EXPECT_THAT(outcome.error, testing::HasSubstr("runtime.profile=deepspeed-zero3"));
}

/// A pipe or a file sees nothing of the progress that a terminal sees.
TEST(SearchCommand, WritesNothingToStderrThatIsNoTerminal) {
  testing::internal::CaptureStderr();
  const Outcome outcome = run(small, {"--search.simulations=70"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
}

TEST(SearchCommand, HeadsRowsMarksTightMemoryAndSaysWhichProfilesAreAlike) {
  const std::vector<std::string> flags{"--search.profiles=pytorch-ddp,pytorch-fsdp2", "--search.local_batch_size=1",
                                       "--search.recompute=none"};
  const Outcome text = run(small, flags);
  ASSERT_EQ(text.code, 0) << text.error;
  EXPECT_THAT(text.printed, testing::ContainsRegex("best of each profile\n +step +memory +GPUs +MFU %"));
  std::vector<std::string> as_json{flags};
  as_json.push_back("--json");
  const auto json = nlohmann::json::parse(run(small, as_json).printed);
  const double fastest = json["best"]["step_time_s"];
  std::size_t within = 0;
  for (const auto& [name, best] : json["best_by_runtime"].items()) {
    const double bar = std::max(best["error_bars"]["step_time_s"]["pct"].get<double>(),
                                json["best"]["error_bars"]["step_time_s"]["pct"].get<double>());
    within += best["step_time_s"].get<double>() < fastest * (1 + bar / 100);
    EXPECT_FALSE(best["tight"].get<bool>()) << "a small model is far from 80 GB";
  }
  EXPECT_EQ(json["not_told_apart"].size(), within > 1 ? within : 0);
  EXPECT_EQ(text.printed.find("cannot be told apart") != std::string::npos, within > 1);
}

TEST(SearchCommand, MemoryWhoseErrorBarExceedsTheDeviceIsTight) {
  Config config("test");
  Cluster cluster = read_cluster("dgx-a100");
  plan::Settings base;
  const Space space;
  const SearchSubject subject{.config = config, .base = base, .cluster = cluster, .space = space, .run = {}};
  const double device = cluster.device.memory_bytes.value;
  const double bar = validation::memory_error_bar(false).pct / 100;
  Candidate candidate;
  candidate.point.runtime = Runtime::ddp;
  candidate.found.memory_bytes = std::llround(device / (1 + bar)) + 10;
  EXPECT_TRUE(is_tight(candidate, subject));
  candidate.found.memory_bytes -= 20;
  EXPECT_FALSE(is_tight(candidate, subject));
  candidate.point.runtime = Runtime::own, candidate.found.memory_bytes = std::llround(device);
  EXPECT_FALSE(is_tight(candidate, subject)) << "exact";
}

TEST(SearchCommand, SimulatesNoMorePlansThanAllowed) {
  const auto json = nlohmann::json::parse(run(small, {"--json", "--search.simulations=70"}).printed);
  EXPECT_EQ(json["fates"]["simulated"].get<int>() + json["fates"]["too_large"].get<int>(), 70);
  EXPECT_GT(json["fates"]["not_simulated"], 0);
}

TEST(SearchCommand, PrintsTheSameOnAnyNumberOfThreads) {
  EXPECT_EQ(run(small, {"--json"}).printed, run(small, {"--json", "--search.threads=3"}).printed);
}

TEST(SearchCommand, WhereNothingFitsSaysWhatWould) {
  const Outcome outcome = run(
      {"search", "--model.preset=llama3-8b", "--parallel.world_size=8", "--machine.cluster=dgx-a100",
       "--train.global_batch_size=16", "--train.local_batch_size=2", "--train.seq_len=4096", "--search.recompute=none",
       "--search.offload=none", "--search.precision=fp32", "--search.strategy=no_shard", "--search.threads=1"});
  EXPECT_EQ(outcome.code, static_cast<int>(ExitCode::infeasible));
  EXPECT_THAT(outcome.error, testing::HasSubstr("the one that lacks least needs at least"));
  EXPECT_THAT(outcome.error, testing::HasSubstr("it fits with"));
  EXPECT_THAT(outcome.error, testing::HasSubstr("parallel.strategy=full_shard"));
}

TEST(SearchCommand, RefusesWhatIsNoSpace) {
  EXPECT_THAT(run({"search", "--machine.cluster=dgx-a100"}).error,
              testing::HasSubstr("train.global_batch_size is not set"));
  EXPECT_THAT(run({"search", "--train.global_batch_size=8"}).error, testing::HasSubstr("machine.cluster is not set"));
  for (const char* file : {"--machine.file=gpu.json", "--machine.file"})
    EXPECT_THAT(run({"search", file, "--train.global_batch_size=8"}).error,
                testing::HasSubstr("needs machine.cluster"));
  const Outcome odd =
      run({"search", "--machine.cluster=dgx-a100", "--train.global_batch_size=60", "--search.gpus=8,16"});
  EXPECT_EQ(odd.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(odd.error, testing::HasSubstr("nearest: 56 or 64"));
  const Outcome none = run({"search", "--machine.cluster=dgx-a100", "--train.global_batch_size=8", "--search.gpus=8",
                            "--search.strategy=hybrid_shard", "--search.shard_degree=3"});
  EXPECT_THAT(none.error, testing::HasSubstr("no combination of the values to search is a plan"));
}

TEST(SearchCommand, AClusterHasOnlySoManyGpus) {
  const Cluster paper = read_cluster("fsdp-paper");
  ASSERT_EQ(paper.gpus, 512);
  EXPECT_NO_THROW(expect_room(paper, 512));
  EXPECT_THROW(expect_room(paper, 1024), InputError);
  Cluster unknown = paper;
  unknown.gpus = 0;
  EXPECT_NO_THROW(expect_room(unknown, 1 << 20));
  const Outcome outcome =
      run({"search", "--machine.cluster=fsdp-paper", "--train.global_batch_size=2048", "--search.gpus=1024"});
  EXPECT_EQ(outcome.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(outcome.error, testing::HasSubstr("1024 GPUs: "));
}

}  // namespace
}  // namespace foreshard::sim::planner
