#include "sim/planner/extended_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "plan/build.hpp"
#include "sim/planner/report_search.hpp"
#include "sim/report.hpp"

namespace foreshard::sim::planner {
namespace {

Config parsed(std::vector<std::string> flags) {
  Config config("test");
  plan::add_plan_keys(config);
  add_report_options(config);
  config.add("json", false, "");
  flags.insert(flags.begin(), "test");
  std::vector<const char*> argv;
  for (const std::string& flag : flags) argv.push_back(flag.c_str());
  config.parse(static_cast<int>(argv.size()), argv.data());
  return config;
}

/// What `foreshard-plan` prints of a small GPT on eight A100.
std::string report(std::vector<std::string> flags, bool on_gpus = true) {
  flags.insert(flags.begin(), {"--model.preset=gpt2", "--model.layers=3"});
  const Config config = parsed(std::move(flags));
  const plan::Settings settings = plan::read_settings(config, 8);
  const plan::Plan plan =
      plan::build_plan(model::build(settings.model, settings.batch), settings.mesh, settings.schedule);
  const Cluster cluster = read_cluster("dgx-a100");
  const Machine machine = generic_machine(8);
  const Prediction prediction = on_gpus ? predict_on_gpus(plan, cluster) : predict(plan, machine, {8, 1});
  const Subject subject{plan, machine, {8, 1}};
  std::string text = config.get<bool>("json") ? report_json(prediction, subject) : report_text(prediction, subject);
  return extended(std::move(text), config, settings, plan, prediction, on_gpus ? &cluster : nullptr);
}

TEST(ExtendedReport, WarnsOfAPartOfThePeakThatNobodyReaches) {
  const auto warns = testing::HasSubstr("is not plausible");
  EXPECT_THAT(report({"--train.seq_len=8"}), warns);
  EXPECT_THAT(report({"--train.local_batch_size=16", "--precision.param=bf16"}), testing::Not(warns));
  EXPECT_FALSE(nlohmann::json::parse(report({"--train.seq_len=8", "--json"}))["gpu"]["plausible"].get<bool>());
  EXPECT_THAT(report({"--train.seq_len=8"}, false), testing::Not(warns)) << "the peak of processor cores is not known";
  EXPECT_FALSE((Utilization{1, 0.76}).is_plausible());
  EXPECT_TRUE((Utilization{1, 0.74}).is_plausible());
}

/// Of a layer of GPT-2's width at 16384 tokens palm counts 12·768·16384 for attention of which 16383 of 32768 parts are
/// masked.
TEST(ExtendedReport, JudgesWithoutTheMaskedHalfOfAttention) {
  const std::vector<std::string> flags{"--train.seq_len=16384", "--model.max_seq_len=16384", "--precision.param=bf16",
                                       "--json"};
  const auto json = nlohmann::json::parse(report(flags));
  const auto& palm = json["gpu"]["utilization"]["palm"]["part_of_peak"];
  const double attention = 3 * 12.0 * 768 * 16384;
  const double masked = attention * 16383 / 32768;
  const Config config =
      parsed({"--model.preset=gpt2", "--model.layers=3", "--train.seq_len=16384", "--model.max_seq_len=16384"});
  const plan::Settings settings = plan::read_settings(config, 8);
  const plan::Plan plan =
      plan::build_plan(model::build(settings.model, settings.batch), settings.mesh, settings.schedule);
  const double counted = 6.0 * static_cast<double>(plan.parameters) + attention;
  EXPECT_NEAR(json["gpu"]["part_of_peak_without_masked"].get<double>(), palm.get<double>() * (1 - masked / counted),
              1e-9);
}

/// Qwen2.5 7B at 32768 tokens: 45.69e9 FLOPs of parameters and 39.46e9 of attention a token, 19.73e9 of them masked.
TEST(ExtendedReport, ALongContextIsNotedAndPlausible) {
  const std::vector<std::string> qwen{"--model.preset=qwen2.5-7b", "--model.layers=28", "--precision.param=bf16"};
  const std::string text = report(qwen);
  EXPECT_THAT(text, testing::HasSubstr("note: 23.2 % of palm's count is the masked half of causal attention"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("is not plausible")));
  EXPECT_THAT(report({"--precision.param=bf16", "--train.seq_len=128"}), testing::Not(testing::HasSubstr("note: ")));
}

TEST(ExtendedReport, AddsWhatIsAskedFor) {
  const std::string plain = report({}), all = report({"--explain", "--tokens=1B"});
  EXPECT_THAT(all, testing::StartsWith(plain.substr(0, 200)));
  for (const char* part : {"where the step's", "one decision changed", "GPU-hours"}) {
    EXPECT_THAT(all, testing::HasSubstr(part));
    EXPECT_THAT(plain, testing::Not(testing::HasSubstr(part)));
  }
  const auto json = nlohmann::json::parse(report({"--explain", "--tokens=1B", "--json"}));
  EXPECT_EQ(json["run"]["steps"], std::ceil(1e9 / (8 * 1024)));
  EXPECT_FALSE(json["explanation"]["effects"].empty());
}

std::string refusal_of(const std::vector<std::string>& flags, int gpus) {
  const Config config = parsed(flags);
  const plan::Settings settings = plan::read_settings(config, gpus);
  const Cluster cluster = read_cluster("dgx-a100");
  const plan::Plan plan =
      plan::build_plan(model::build(settings.model, settings.batch), settings.mesh, settings.schedule);
  try {
    expect_fit(settings, predict_on_gpus(plan, cluster), cluster);
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::infeasible);
    return error.what();
  }
  return "";
}

TEST(ExtendedReport, WhatDoesNotFitIsRefusedWithTheSmallestChange) {
  const std::vector<std::string> large{"--model.preset=llama3-8b", "--model.layers=8", "--train.seq_len=8192",
                                       "--train.local_batch_size=8"};
  const std::string refusal = refusal_of(large, 8);
  EXPECT_THAT(refusal, testing::HasSubstr("of the 79.2 GiB that a A100-SXM4-80GB has"));
  EXPECT_THAT(refusal, testing::HasSubstr("it fits with\n"));
  EXPECT_EQ(refusal_of({"--model.preset=gpt2"}, 8), "");
}

TEST(ExtendedReport, ExplainsStepsOnGpusOnly) { EXPECT_ANY_THROW(report({"--explain"}, false)); }

TEST(ExtendedReport, APriceNeedsALength) { EXPECT_ANY_THROW(report({"--gpu-hour-price=2"})); }

}  // namespace
}  // namespace foreshard::sim::planner
