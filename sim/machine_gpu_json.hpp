#pragma once
#include <optional>

#include "sim/machine_node.hpp"

namespace foreshard::sim {

/// The GPU that a machine file is of: "device" is "cuda" and "gpu" describes it. Nothing where the file is of processor
/// cores: "device" is "cpu" or not there. Throws InputError (bad_input).
std::optional<MeasuredGpu> read_gpu(const MachineNode& root);

/// The keys "device" and "gpu".
nlohmann::ordered_json json_of(const MeasuredGpu& gpu);

}  // namespace foreshard::sim
