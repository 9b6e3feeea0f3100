#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/predict.hpp"
#include "sim/validation/error_bars.hpp"

namespace foreshard::sim {

/// The parts of a report that only a prediction on GPUs has. `prediction.gpu` is there.

/// "cluster …: 8 × … a node, runtime …", one line.
std::string gpu_header(const Prediction& prediction);
/// Whether the plan fits the device's memory, one line.
std::string gpu_fit(const Prediction& prediction);
/// How far the step's time is to be trusted; of our own runtime nobody published runs.
validation::ErrorBar step_time_error_bar(const Prediction& prediction, const plan::Plan& plan);
/// The hardware's numbers with their sources, and the command behind the error bar.
std::string gpu_sources(const Prediction& prediction);
/// TFLOP/s of a GPU and part of its peak, a line for each convention of counting.
std::string gpu_utilization(const Prediction& prediction);
/// The same as JSON: the device, "fits", and "utilization" by convention.
nlohmann::ordered_json gpu_json(const Prediction& prediction, const plan::Plan& plan);

}  // namespace foreshard::sim
