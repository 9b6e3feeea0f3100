#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/predict.hpp"

namespace foreshard::sim {

/// The parts of a report that only a prediction on GPUs has. `prediction.gpu` is there.

/// "cluster …: 8 × … a node, runtime …", one line.
std::string gpu_header(const Prediction& prediction);
/// Whether the plan fits the device's memory, one line.
std::string gpu_fit(const Prediction& prediction);
/// TFLOP/s of a GPU and part of its peak, a line for each convention of counting.
std::string gpu_utilization(const Prediction& prediction);
/// The same as JSON: the device, "fits", and "utilization" by convention.
nlohmann::ordered_json gpu_json(const Prediction& prediction);

}  // namespace foreshard::sim
