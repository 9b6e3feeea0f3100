#pragma once
#include <string>

#include "model/source.hpp"
#include "sim/predict.hpp"

namespace foreshard::sim {

/// What a prediction was made for.
struct Subject {
  const plan::Plan& plan;
  const Machine& machine;
  Layout layout;
  model::Source model{};  ///< shown where it says where the model came from
};

/// For people: memory by class, step time by lane, exposed communication, TFLOPS, and which numbers are assumed.
std::string report_text(const Prediction& prediction, const Subject& subject);

/// One JSON object, units in the keys, in seconds, bytes and FLOPs. Collectives are those of one step of one rank.
std::string report_json(const Prediction& prediction, const Subject& subject);

}  // namespace foreshard::sim
