#pragma once
#include <cstdint>
#include <string>

#include "comm/communicator.hpp"

namespace foreshard::engine::cuda {

/// A rank's device.
struct Device {
  int index = 0;  ///< among those that this process sees
  std::string name, pci_bus_id;
  std::int64_t memory_bytes = 0;
};

/// Throws InputError (usage) for a device older than the kernels are built for.
void expect_capability(const std::string& name, int major, int minor);

/// Which of `visible` devices a rank takes: the only one, else the one of its place on its node.
int device_of(int visible, int node_rank);

/// Collective. Chooses this rank's device and makes it the calling thread's current one. Throws InputError where there
/// is no device, or where two ranks of a host have the same one.
Device choose_device(comm::Communicator& ranks);

}  // namespace foreshard::engine::cuda
