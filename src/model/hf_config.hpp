#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/hf_config_file.hpp"
#include "model/model.hpp"
#include "model/source.hpp"

namespace foreshard::model {

/// A model as its Hugging Face config.json, unmodified, describes it.
struct HfModel {
  Config config;
  Source source;
};

/// Values of `model_type` that can be read.
std::vector<std::string_view> hf_model_types();

/// Reads `path`, a config.json or the folder of one. A key that is missing or null has the default of the family's
/// configuration class, and a note says so; a key that decides nothing here is named in a note. Throws one
/// InputError(bad_input) with all that is wrong: values of another type or out of range, an unknown `model_type`,
/// experts, several models in one file, operators that no family here has. Sizes that do not go together are left for
/// `problems_of`.
HfModel read_hf_config(const std::string& path);

/// The same of a file that has been parsed.
HfModel hf_model_of(HfConfigFile file);

}  // namespace foreshard::model
