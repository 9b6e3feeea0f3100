// Calibration of GPUs that are not there, and predictions by machine files of GPUs that do not fit the other keys.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "command.hpp"

namespace foreshard::faults {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class GpuMachine : public testing::Test {
 protected:
  void SetUp() override {
    nlohmann::json gpu{{"name", "NVIDIA H200"}, {"architecture", "sm_90"}, {"multiprocessors", 132}, {"per_node", 8}};
    for (const char* key : {"memory_bytes", "copy_bytes_per_s", "half_flops_per_s", "f32_flops_per_s", "launch_s",
                            "to_device_bytes_per_s", "to_host_bytes_per_s", "graph_kernel_s", "graph_launch_s"})
      gpu[key] = {{"value", 1e11}, {"source", "measured: made up"}};
    gpu["graph_kernel_s"]["value"] = 1e-6;
    const nlohmann::json linear{{"kind", "linear"},
                                {"accumulate", false},
                                {"busy_cores", 1},
                                {"source", "measured: a made-up table"},
                                {"columns", {"rows", "cols", "inner", "seconds"}},
                                {"points", {{256, 384, 128, 1e-3}, {256, 512, 128, 1e-3}}}};
    std::ofstream(file_) << nlohmann::json{
        {"schema", 2},      {"name", "eight GPUs"}, {"date", ""},          {"cores", 64},
        {"device", "cuda"}, {"gpu", gpu},           {"kernels", {linear}}, {"collectives", nlohmann::json::array()}};
  }
  void TearDown() override { std::filesystem::remove(file_); }

  Result plan(const std::string& arguments) const {
    return run(fmt::format("{}/foreshard-plan --model.preset=byte-small --parallel.world_size=2 --machine.file={} {}",
                           FORESHARD_BIN, file_.string(), arguments));
  }

  const std::filesystem::path file_ = std::filesystem::temp_directory_path() / "foreshard-made-up-gpu.json";
};

TEST_F(GpuMachine, PredictsWithItsTablesAndNamesThem) {
  const Result result = plan("");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("eight GPUs: 8 x H200"), HasSubstr("foreshard-cuda"),
                                   HasSubstr("measured: a made-up table")));
}

TEST_F(GpuMachine, StandsBesideAClusterOfItsDeviceOnly) {
  EXPECT_EQ(plan("--machine.cluster=aws-p5en").exit_code, 0);
  const Result result = plan("--machine.cluster=aws-p4d");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, AllOf(HasSubstr("was measured on NVIDIA H200"), HasSubstr("A100")));
}

TEST_F(GpuMachine, IsNotForProcessorCores) {
  const Result result = plan("--runtime.profile=foreshard-cpu");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr("runtime.profile = foreshard-cpu does not run on"));
}

TEST_F(GpuMachine, IsNotMeasuredWithoutADevice) {
  std::filesystem::remove(file_);
  const Result result = run(fmt::format("env CUDA_VISIBLE_DEVICES= {}/foreshard-calibrate --device=cuda --out {}",
                                        FORESHARD_BIN, file_.string()));
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("CUDA"), HasSubstr("--device=cpu")));
  EXPECT_FALSE(std::filesystem::exists(file_));
}

}  // namespace
}  // namespace foreshard::faults
