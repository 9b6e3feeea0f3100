#include "sim/cluster.hpp"

#include "sim/catalogue.hpp"

namespace foreshard::sim {

Fabric read_fabric(const std::string& name_or_path) {
  const HardwareFile file = HardwareFile::open("fabrics", name_or_path);
  return {file.text("name"),
          file.quantity("floor_s"),
          file.quantity("all_gather_s_per_sqrt_byte"),
          file.quantity("reduce_scatter_s_per_sqrt_byte"),
          file.quantity("all_reduce_s_per_sqrt_byte"),
          file.quantity("efficiency", 1e-3)};
}

Cluster read_cluster(const std::string& name_or_path) {
  const HardwareFile file = HardwareFile::open("clusters", name_or_path);
  return {file.text("name"),
          read_device(file.text("gpu")),
          file.count("gpus_per_node"),
          file.count("link_domain"),
          file.count("nics"),
          file.quantity("nic_bytes_per_s", 1),
          file.text("cpu"),
          file.count("gpus", 0),
          read_fabric(file.text("intra")),
          read_fabric(file.text("fabric"))};
}

}  // namespace foreshard::sim
