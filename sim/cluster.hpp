#pragma once
#include <memory>
#include <string>

#include "sim/device.hpp"

namespace foreshard::sim {

/// What a way between devices adds to NCCL's own estimate, which knows neither the floor of a message nor how long
/// chunked pipelines take to fill: seconds = NCCL's + floor + coefficient·√bytes, bytes of the whole buffer.
struct Fabric {
  std::string name;
  Quantity floor_s;
  Quantity all_gather_s_per_sqrt_byte, reduce_scatter_s_per_sqrt_byte, all_reduce_s_per_sqrt_byte;
  Quantity efficiency;  ///< bandwidth that is reached, divided by the one in NCCL's estimate
};

/// Equal nodes of equal devices.
struct Cluster {
  std::string name;
  Device device;
  int gpus_per_node = 1;
  int link_domain = 1;  ///< devices that share links without a network: of a node, or of more (NVL72)
  int nics = 1;         ///< of a node
  Quantity nic_bytes_per_s;
  std::string cpu;  ///< "intel", "amd" or "arm"
  int gpus = 0;     ///< of the whole cluster, 0 if unknown
  Fabric intra, fabric;
  std::shared_ptr<const Machine> measured;  ///< its device by calibration, with `gpu`; null: by formula alone
};

/// By the name in the catalogue ("aws-p5"), or from a JSON file of the form of sim/machines/clusters; its "gpu",
/// "intra" and "fabric" are names or paths likewise. Throws InputError (bad_input) as `read_device` does.
Cluster read_cluster(const std::string& name_or_path);
Fabric read_fabric(const std::string& name_or_path);

}  // namespace foreshard::sim
