#pragma once
#include "sim/cluster.hpp"

namespace foreshard::sim {

/// A cluster of nodes as the one that `machine`, of GPUs, was measured on. What calibration cannot see is the
/// catalogue's where it knows the device by its printed name; else, and of the network between nodes, it is assumed and
/// says so.
Cluster measured_cluster(const Machine& machine);

/// `cluster` with its device by calibration. Throws InputError (usage), which names `path`, if it has another device.
Cluster measured_cluster(Cluster cluster, const Machine& machine, const std::string& path);

}  // namespace foreshard::sim
