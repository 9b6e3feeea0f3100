// foreshard-plan for PyTorch, as its caller sees it: what is printed, and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "sim/planner/extended_report.hpp"
#include "sim/runtimes/command.hpp"
#include "sim/runtimes/torch_job.hpp"

namespace foreshard::sim::torch {
namespace {

using ::testing::HasSubstr;

Config config_of(std::vector<const char*> arguments) {
  Config config("test");
  plan::add_plan_keys(config);
  config.add("parallel.world_size", 1, "");
  config.add("runtime.profile", "pytorch-fsdp2", "");
  config.add("machine.cluster", "dgx-a100", "");
  for (const char* text : {"machine.file", "trace"}) config.add(text, "", "");
  for (const char* flag : {"json", "explain-memory", "order", "print-plan", "force"}) config.add(flag, false, "");
  config.add("step", 0, "");
  add_torch_keys(config);
  planner::add_report_options(config);
  arguments.insert(arguments.begin(), "test");
  config.parse(static_cast<int>(arguments.size()), arguments.data());
  return config;
}

/// What a run ends with; empty if it fits.
std::string refusal_of(const std::vector<const char*>& arguments) {
  testing::internal::CaptureStdout();
  std::string refusal;
  try {
    run_command(config_of(arguments), "test");
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::infeasible);
    refusal = error.what();
  }
  EXPECT_NE(testing::internal::GetCapturedStdout(), "");
  return refusal;
}

TEST(TorchCommand, AnExplainedPeakThatDoesNotFitEndsAsThePlainReport) {
  std::vector<const char*> large{"--model.preset=gpt2", "--parallel.world_size=8", "--train.seq_len=1024",
                                 "--train.local_batch_size=64"};
  const std::string plain = refusal_of(large);
  EXPECT_THAT(plain, HasSubstr("it fits with\n"));
  large.push_back("--explain-memory");
  EXPECT_EQ(refusal_of(large), plain);
  EXPECT_EQ(refusal_of({"--model.preset=gpt2", "--train.seq_len=64", "--explain-memory"}), "");
}

}  // namespace
}  // namespace foreshard::sim::torch
