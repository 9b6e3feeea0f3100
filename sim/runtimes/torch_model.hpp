#pragma once
#include <string>
#include <vector>

#include "model/model.hpp"
#include "sim/runtimes/eager_model.hpp"

namespace foreshard::sim::torch {

/// The model of Hugging Face transformers that a model of ours is. Appends to `problems` what it cannot have.
Model eager_model_of(const model::Config& model, std::vector<std::string>& problems);

}  // namespace foreshard::sim::torch
