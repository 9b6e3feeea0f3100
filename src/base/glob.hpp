#pragma once
#include <string_view>

namespace foreshard {

/// True if `glob` describes all of `text`: '*' stands for any characters or none, '?' for any one.
bool matches_glob(std::string_view glob, std::string_view text);

}  // namespace foreshard
