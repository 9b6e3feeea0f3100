#pragma once
#include <utility>

#include "base/config.hpp"
#include "model/model.hpp"
#include "model/source.hpp"
#include "plan/settings_parallel.hpp"

namespace foreshard::plan {

/// The model.* keys: which model.
void add_model_keys(Config& config);

/// The preset's or the file's model, then whatever keys override: of a file's sizes that is noted. Appends to
/// `problems` what does not fit together; throws InputError(bad_input) for a file that is no model's.
std::pair<model::Config, model::Source> read_model(const Config& config, Problems& problems);

/// Appends what is wrong with the sizes.
void check_model(const model::Config& model, const model::BatchShape& batch, const model::Source& source,
                 Problems& problems);

}  // namespace foreshard::plan
