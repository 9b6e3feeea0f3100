#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/planner/point.hpp"
#include "sim/planner/time_parts.hpp"

namespace foreshard::sim::planner {

/// Equal ops of a step.
struct OpGroup {
  plan::Op op;
  DType dtype = DType::f32;
  int count = 0;
  double seconds = 0;  ///< of each, alone, on the mean rank
  int sms = 0;         ///< of a collective
  int members = 1;
};

/// What the step would be with one decision changed.
struct Effect {
  std::string change;  ///< "key=value …"
  double step_s = 0;
  std::int64_t memory_bytes = 0;
};

/// A prediction on a cluster, taken apart.
struct Explanation {
  TimeParts parts;
  std::vector<OpGroup> kernels, collectives;  ///< those that take longest, longest first
  std::vector<Effect> effects;                ///< the least memory first
  double step_s = 0;
  std::int64_t memory_bytes = 0;
};

/// `plan` is of `settings`, `prediction` of `plan` on `cluster`. Every effect is a prediction of its own.
Explanation explain(const plan::Settings& settings, const plan::Plan& plan, const Prediction& prediction,
                    const Cluster& cluster);

std::string explanation_text(const Explanation& explanation, const plan::Settings& settings, const plan::Plan& plan);
nlohmann::ordered_json explanation_json(const Explanation& explanation);

}  // namespace foreshard::sim::planner
