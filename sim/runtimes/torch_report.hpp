#pragma once
#include <string>

#include "sim/runtimes/torch_prediction.hpp"
#include "trace/tables.hpp"

namespace foreshard::sim::torch {

/// For people: step time and where it goes, memory, TFLOP/s by who counts, notes, and where the numbers come from.
std::string report_text(const TorchPrediction& prediction, const TorchJob& job, const Cluster& cluster);

/// Whether it fits the device's memory, or where it does not: while the model is made, in the first step, in a later
/// one.
std::string verdict_text(const TorchPrediction& prediction);

/// One JSON object, units in the keys, in seconds, bytes and FLOPs.
std::string report_json(const TorchPrediction& prediction, const TorchJob& job, const Cluster& cluster);

/// Writes the steady step of rank 0 as a trace of kind "predicted" with one step: an op for each kernel, copy and
/// collective, on lanes compute, gather, reduce, replicate and copy (casts before gathers). Throws as trace::Writer
/// does.
void write_trace(const std::string& path, trace::RunInfo run, const TorchPrediction& prediction, const TorchJob& job,
                 bool force);

}  // namespace foreshard::sim::torch
