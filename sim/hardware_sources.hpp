#pragma once
#include <string>
#include <vector>

#include "sim/cluster.hpp"

namespace foreshard::sim {

/// What a prediction on a cluster takes for its devices and the ways between them, and who says so: a line for each
/// number, the network only where there are `gpus` on several nodes.
std::vector<std::string> hardware_sources(const Cluster& cluster, int gpus);

}  // namespace foreshard::sim
