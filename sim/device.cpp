#include "sim/device.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "base/error.hpp"
#include "sim/catalogue.hpp"

namespace foreshard::sim {
namespace {

struct NamedQuantity {
  const char* key;
  Quantity Device::*member;
};
constexpr std::array quantities{NamedQuantity{"bf16_flops", &Device::bf16_flops},
                                NamedQuantity{"fp16_flops", &Device::fp16_flops},
                                NamedQuantity{"tf32_flops", &Device::tf32_flops},
                                NamedQuantity{"fp32_flops", &Device::fp32_flops},
                                NamedQuantity{"fp8_flops", &Device::fp8_flops},
                                NamedQuantity{"matmul_flops", &Device::matmul_flops},
                                NamedQuantity{"memory_bytes", &Device::memory_bytes},
                                NamedQuantity{"memory_bytes_per_s", &Device::memory_bytes_per_s},
                                NamedQuantity{"link_bytes_per_s", &Device::link_bytes_per_s},
                                NamedQuantity{"l2_bytes", &Device::l2_bytes},
                                NamedQuantity{"clock_hz", &Device::clock_hz},
                                NamedQuantity{"power_w", &Device::power_w}};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

const nlohmann::json& printed_names() {
  static const nlohmann::json names = [] {
    const auto files = embedded_files();
    const auto file = std::ranges::find(files, "gpu_names", &EmbeddedFile::name);
    FORESHARD_EXPECT(file != files.end(), "the catalogue has no gpu_names");
    return nlohmann::json::parse(file->text);
  }();
  return names;
}

}  // namespace

int Device::compute_capability() const {
  return architecture.starts_with("sm_") ? std::stoi(architecture.substr(3)) : 0;
}

std::string catalogue_name_of(const std::string& printed) {
  for (const auto& [name, gpu] : printed_names().items())
    if (lower(name) == lower(printed)) return gpu.get<std::string>();
  return printed;
}

Device read_device(const std::string& name_or_path) {
  const HardwareFile file = HardwareFile::open("gpus", catalogue_name_of(name_or_path));
  Device device;
  device.name = file.text("name");
  device.architecture = file.text("architecture");
  for (const auto& [key, member] : quantities) device.*member = file.quantity(key);
  device.nvlinks = file.count("nvlinks", 0);
  device.pcie_generation = file.count("pcie_generation");
  device.pcie_lanes = file.count("pcie_lanes");
  device.multiprocessors = file.count("multiprocessors");
  return device;
}

std::string catalogue_key_of(const std::string& device_name) {
  static const std::map<std::string, std::string> keys = [] {
    std::map<std::string, std::string> by_name;
    for (const std::string& key : catalogue_names("gpus")) by_name[read_device(key).name] = key;
    return by_name;
  }();
  const auto found = keys.find(device_name);
  return found == keys.end() ? device_name : found->second;
}

}  // namespace foreshard::sim
