#pragma once
#include <string>

#include "base/config.hpp"
#include "plan/settings.hpp"
#include "sim/predict.hpp"
#include "sim/runtimes/torch_prediction.hpp"

namespace foreshard::sim::planner {

/// Declares the options of a prediction that the planner answers: --explain, --what-if, --tokens, --gpu-hour-price.
void add_report_options(Config& config);

/// A line to tell the user where nobody chose the types that a GPU computes in; else empty.
std::string types_note(const Config& config);

/// `report`, the text or JSON of a prediction, with what these options ask for; and with a warning where a GPU would do
/// implausibly much or little. `cluster` is null where the prediction is for processor cores. Throws InputError(usage)
/// for options that are not for this prediction.
std::string extended(std::string report, const Config& config, const plan::Settings& settings, const plan::Plan& plan,
                     const Prediction& prediction, const Cluster* cluster);

/// `report` of a prediction of PyTorch with what a whole run takes, if --tokens asks for it and the step fits.
std::string with_run(std::string report, const Config& config, const plan::Settings& settings,
                     const torch::TorchPrediction& prediction);

/// Throws InputError(infeasible) if a prediction does not fit its GPU, with the smallest changes that would make it
/// fit.
void expect_fit(const plan::Settings& settings, const Prediction& prediction, const Cluster& cluster);
/// The same of a prediction of PyTorch.
void expect_fit(const plan::Settings& settings, const torch::TorchJob& job, const torch::TorchPrediction& prediction,
                const Cluster& cluster);

}  // namespace foreshard::sim::planner
