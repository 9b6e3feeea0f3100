#include "sim/machine_gpu_json.hpp"

#include <array>

namespace foreshard::sim {
namespace {

struct NamedQuantity {
  const char* name;
  Quantity MeasuredGpu::*member;
};
constexpr std::array rates{NamedQuantity{"memory_bytes", &MeasuredGpu::memory_bytes},
                           NamedQuantity{"copy_bytes_per_s", &MeasuredGpu::copy_bytes_per_s},
                           NamedQuantity{"half_flops_per_s", &MeasuredGpu::half_flops_per_s},
                           NamedQuantity{"f32_flops_per_s", &MeasuredGpu::f32_flops_per_s},
                           NamedQuantity{"to_device_bytes_per_s", &MeasuredGpu::to_device_bytes_per_s},
                           NamedQuantity{"to_host_bytes_per_s", &MeasuredGpu::to_host_bytes_per_s}};
constexpr std::array times{NamedQuantity{"launch_s", &MeasuredGpu::launch_s},
                           NamedQuantity{"graph_kernel_s", &MeasuredGpu::graph_kernel_s},
                           NamedQuantity{"graph_launch_s", &MeasuredGpu::graph_launch_s}};

/// What is divided by must be above 0.
Quantity read_rate(const MachineNode& node) { return {node.at("value").positive(), node.at("source").text()}; }

}  // namespace

std::optional<MeasuredGpu> read_gpu(const MachineNode& root) {
  const std::string device = root.has("device") ? root.at("device").text() : "cpu";
  if (device == "cpu") return std::nullopt;
  if (device != "cuda") root.at("device").fail("\"cpu\" or \"cuda\"");
  const MachineNode node = root.at("gpu");
  MeasuredGpu gpu{.name = node.at("name").text(),
                  .architecture = node.at("architecture").text(),
                  .multiprocessors = node.at("multiprocessors").count(),
                  .per_node = node.at("per_node").count()};
  for (const auto& [name, member] : rates) gpu.*member = read_rate(node.at(name));
  for (const auto& [name, member] : times) gpu.*member = node.at(name).quantity();
  return gpu;
}

nlohmann::ordered_json json_of(const MeasuredGpu& gpu) {
  nlohmann::ordered_json json{{"name", gpu.name},
                              {"architecture", gpu.architecture},
                              {"multiprocessors", gpu.multiprocessors},
                              {"per_node", gpu.per_node}};
  for (const auto& [name, member] : rates) json[name] = json_of(gpu.*member);
  for (const auto& [name, member] : times) json[name] = json_of(gpu.*member);
  return {{"device", "cuda"}, {"gpu", json}};
}

}  // namespace foreshard::sim
