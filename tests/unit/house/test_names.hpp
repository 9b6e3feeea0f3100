#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard::house {

/// "Suite.Test" of each GoogleTest test in the text of a source file.
std::set<std::string> tests_defined_in(std::string_view source);

/// What a page calls tests: all `Suite.Test` in backticks that begin with capitals, `*` and `…` standing for any
/// letters.
std::vector<std::string> tests_named_in(std::string_view page);

/// Whether one of `tests` is so named.
bool is_test(const std::string& name, const std::set<std::string>& tests);

}  // namespace foreshard::house
