#include "unit/house/test_names.hpp"

#include <algorithm>
#include <regex>

namespace foreshard::house {
namespace {

/// Calls `use` with each match of `pattern` in `text`.
template <class Use>
void each_match(const std::regex& pattern, std::string_view text, Use use) {
  for (std::cregex_iterator match(text.data(), text.data() + text.size(), pattern), end; match != end; ++match)
    use(*match);
}

}  // namespace

std::set<std::string> tests_defined_in(std::string_view source) {
  static const std::regex definition(R"((?:^|\n)(?:TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*(\w+),\s*(\w+)\))");
  std::set<std::string> tests;
  each_match(definition, source, [&](const std::cmatch& match) { tests.insert(match.str(1) + "." + match.str(2)); });
  return tests;
}

std::vector<std::string> tests_named_in(std::string_view page) {
  static const std::regex name(R"(`([A-Z][\w*]*\.(?:[A-Z*]|…)(?:[\w*]|…)*)`)"), rest("…");
  std::vector<std::string> names;
  each_match(name, page,
             [&](const std::cmatch& match) { names.push_back(std::regex_replace(match.str(1), rest, "*")); });
  return names;
}

bool is_test(const std::string& name, const std::set<std::string>& tests) {
  static const std::regex dot(R"(\.)"), star(R"(\*)");
  const std::regex pattern(std::regex_replace(std::regex_replace(name, dot, "\\."), star, "\\w*"));
  return std::ranges::any_of(tests, [&](const std::string& test) { return std::regex_match(test, pattern); });
}

}  // namespace foreshard::house
