#include "sim/catalogue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "base/error.hpp"
#include "sim/catalogue_command.hpp"
#include "sim/cluster.hpp"

namespace foreshard::sim {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& name, auto read, ExitCode code = ExitCode::bad_input) {
  try {
    read(name);
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "accepted";
}

std::string write_temporary(const std::string& text) {
  const std::string path = testing::TempDir() + "/hardware.json";
  std::ofstream(path) << text;
  return path;
}

TEST(Catalogue, H100IsWhatIsPublished) {
  const Device device = read_device("h100-sxm");
  EXPECT_DOUBLE_EQ(device.bf16_flops.value, 989e12);
  EXPECT_DOUBLE_EQ(device.memory_bytes_per_s.value, 3350e9);
  EXPECT_DOUBLE_EQ(device.memory_bytes.value, 81082.0 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(device.link_bytes_per_s.value, 450e9);
  EXPECT_EQ(device.multiprocessors, 132);
  EXPECT_EQ(device.compute_capability(), 90);
}

TEST(Catalogue, EveryDeviceHasMemoryComputeAndSources) {
  for (const std::string& name : catalogue_names("gpus")) {
    const Device device = read_device(name);
    EXPECT_GT(device.fp16_flops.value, 1e13) << name;
    EXPECT_GT(device.memory_bytes.value, 1e10) << name;
    EXPECT_GT(device.memory_bytes_per_s.value, 3e11) << name;
    EXPECT_LE(device.matmul_flops.value, std::max(device.bf16_flops.value, device.fp16_flops.value)) << name;
    for (const Quantity& quantity : {device.fp16_flops, device.memory_bytes, device.matmul_flops, device.clock_hz})
      EXPECT_FALSE(quantity.source.empty()) << name;
  }
}

TEST(Catalogue, EveryClusterNamesADeviceAndFabrics) {
  for (const std::string& name : catalogue_names("clusters")) {
    const Cluster cluster = read_cluster(name);
    EXPECT_GE(cluster.link_domain, cluster.gpus_per_node) << name;
    EXPECT_EQ(cluster.device.nvlinks > 0, cluster.intra.name.starts_with("NVLink")) << name;
  }
}

TEST(Catalogue, NodesOfP5HaveFourHundredGigabytes) {
  const Cluster cluster = read_cluster("aws-p5");
  EXPECT_DOUBLE_EQ(cluster.nics * cluster.nic_bytes_per_s.value, 400e9);
}

TEST(Catalogue, NamesThatSoftwarePrintsAreKnown) {
  EXPECT_EQ(catalogue_name_of("NVIDIA H100 80GB HBM3"), "h100-sxm");
  EXPECT_EQ(catalogue_name_of("nvidia a100-sxm4-40gb"), "a100-sxm-40gb");
  EXPECT_EQ(read_device("H100 (94GB memory as printed)").name, "H100-NVL-94GB");
}

TEST(Catalogue, EveryPrintedNameIsOfADevice) {
  for (const EmbeddedFile& file : embedded_files())
    if (file.name == "gpu_names") {
      const auto names = nlohmann::json::parse(file.text);
      for (const auto& [printed, gpu] : names.items()) EXPECT_NO_THROW(read_device(printed)) << printed;
    }
}

TEST(Catalogue, UnknownNamesAreRefusedWithTheNearest) {
  EXPECT_THAT(refusal("h100-sxn", read_device), HasSubstr("`h100-sxm`"));
  EXPECT_THAT(refusal("aws-p5x", read_cluster, ExitCode::usage), HasSubstr("`aws-p5`")) << "a setting names it";
}

TEST(Catalogue, AFileOfOnesOwnIsRead) {
  const std::string path = write_temporary(R"({"schema": 1, "name": "mine", "gpu": "h200", "intra": "nvlink4",
    "fabric": "roce", "cpu": "intel", "gpus_per_node": {"value": 8, "source": "s"}, "link_domain": {"value": 8, "source": "s"},
    "nics": {"value": 2, "source": "s"}, "nic_bytes_per_s": {"value": 5e10, "source": "s"}, "gpus": {"value": 16, "source": "s"}})");
  EXPECT_EQ(read_cluster(path).device.name, "H200-SXM-141GB");
}

TEST(Catalogue, BadFilesAreNamedWithKeyAndValue) {
  EXPECT_THAT(refusal("/nowhere/x.json", read_device), HasSubstr("cannot be read"));
  EXPECT_THAT(refusal(write_temporary("{\"schema\": 1"), read_device), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(write_temporary("{\"schema\": 7}"), read_device), HasSubstr("'schema' is 7, expected 1"));
  EXPECT_THAT(
      refusal(write_temporary(R"({"schema": 1, "name": "x", "floor_s": {"value": -1, "source": "s"}})"), read_fabric),
      HasSubstr("'floor_s' is -1, expected a number of at least 0"));
}

TEST(Catalogue, IsListedWholeWithWhatItsFilesSay) {
  const char* arguments[] = {"catalogue", "--json"};
  testing::internal::CaptureStdout();
  EXPECT_EQ(catalogue_command(2, arguments), 0);
  const auto listed = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  for (const char* folder : {"clusters", "gpus"}) {
    std::vector<std::string> names;
    for (const auto& entry : listed[folder]) names.push_back(entry["name"]);
    EXPECT_EQ(names, catalogue_names(folder));
  }
  const auto& clusters = listed["clusters"];
  for (const auto& cluster : clusters) EXPECT_THAT(catalogue_names("gpus"), testing::Contains(cluster["gpu"]));
  const auto alps =
      std::ranges::find(clusters, "alps", [](const auto& c) { return c["name"].template get<std::string>(); });
  ASSERT_NE(alps, clusters.end());
  EXPECT_EQ((*alps)["gpus"], 10752);  // 2,688 nodes of four GH200
  EXPECT_EQ((*alps)["nic_bytes_per_s"], 25e9);
}

}  // namespace
}  // namespace foreshard::sim
