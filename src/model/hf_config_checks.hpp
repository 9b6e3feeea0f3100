#pragma once
#include <initializer_list>
#include <string_view>

#include "model/hf_config_file.hpp"

/// What families have in common when they are read.
namespace foreshard::model {

/// Refuses an activation that is none of those `computed`; none given is the family's own.
void expect_activation(HfConfigFile& file, std::initializer_list<std::string_view> computed);

/// Refuses a flag that is set.
void refuse_flag(HfConfigFile& file, std::string_view key, std::string_view why);

/// Notes rates of dropout, which are not taken over.
void note_dropout(HfConfigFile& file, std::initializer_list<std::string_view> keys);

}  // namespace foreshard::model
