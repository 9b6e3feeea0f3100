#include "sim/hardware_sources.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/units.hpp"

namespace foreshard::sim {
namespace {

std::string line(std::string_view what, const std::string& value, const std::string& source) {
  return fmt::format("{} {}: {}", what, value, source.empty() ? "no source given" : source);
}

void add_fabric(std::vector<std::string>& lines, const Fabric& fabric, std::string_view where) {
  lines.push_back(line(fmt::format("{} ({}):", where, fabric.name),
                       fmt::format("reaches {:.3g} of NCCL's own estimate", fabric.efficiency.value),
                       fabric.efficiency.source));
  lines.push_back(line(fmt::format("{} ({}):", where, fabric.name),
                       fmt::format("{:.3g} us more of a message", 1e6 * fabric.floor_s.value), fabric.floor_s.source));
}

}  // namespace

std::vector<std::string> hardware_sources(const Cluster& cluster, int gpus) {
  const Device& d = cluster.device;
  std::vector<std::string> lines{
      line("matrix products at best", fmt::format("{:.4g} TFLOP/s", d.matmul_flops.value / 1e12),
           d.matmul_flops.source),
      line("memory", bytes_text(std::llround(d.memory_bytes.value)), d.memory_bytes.source),
      line("memory's bandwidth", fmt::format("{:.4g} TB/s", d.memory_bytes_per_s.value / 1e12),
           d.memory_bytes_per_s.source)};
  if (gpus > 1) add_fabric(lines, cluster.intra, "inside a node");
  if (gpus <= cluster.link_domain) return lines;
  lines.push_back(line(fmt::format("network of a node: {} x", cluster.nics),
                       fmt::format("{:.4g} GB/s", cluster.nic_bytes_per_s.value / 1e9),
                       cluster.nic_bytes_per_s.source));
  add_fabric(lines, cluster.fabric, "network");
  return lines;
}

}  // namespace foreshard::sim
