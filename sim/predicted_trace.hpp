#pragma once
#include <string>

#include "sim/predict.hpp"
#include "trace/tables.hpp"

namespace foreshard::sim {

/// Writes the step of rank 0, all of whose peers are its equals, as a trace of kind "predicted" with one step,
/// number 1. `run` gives the command line and configuration. Throws as trace::Writer does.
void write_trace(const std::string& path, trace::RunInfo run, const Prediction& prediction, const plan::Plan& plan,
                 bool force);

}  // namespace foreshard::sim
