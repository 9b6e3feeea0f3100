#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "sim/predict.hpp"

namespace foreshard::sim::planner {

/// A question: what if a key had other values?
struct WhatIf {
  std::string key;
  std::vector<std::string> values;
};

/// Of "key=a,b,c". Throws InputError(usage) if that is no key of `config`, or has no values.
WhatIf read_what_if(const Config& config, const std::string& text);

/// Predicts with one more flag, "--key=value".
using Predict = std::function<Prediction(const std::string& flag)>;

/// The prediction as it is (no flag) and with each value, side by side: time, communication, memory by class, and what
/// each differs by. Values that cannot be had are named with the reason. `json`: an object instead.
std::string what_if_report(const WhatIf& what_if, const std::string& as_it_is, const Predict& predict, bool json);

}  // namespace foreshard::sim::planner
