#include "base/glob.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace foreshard {
namespace {

/// The same by the definition: try every length for a star.
bool by_definition(std::string_view glob, std::string_view text) {
  if (glob.empty()) return text.empty();
  if (glob[0] == '*') {
    for (std::size_t n = 0; n <= text.size(); ++n)
      if (by_definition(glob.substr(1), text.substr(n))) return true;
    return false;
  }
  return !text.empty() && (glob[0] == '?' || glob[0] == text[0]) && by_definition(glob.substr(1), text.substr(1));
}

/// All words of up to `length` letters of `alphabet`.
std::vector<std::string> words(std::string_view alphabet, std::size_t length) {
  std::vector<std::string> all{""};
  for (std::size_t first = 0; length > 0; --length) {
    const std::size_t end = all.size();
    for (; first < end; ++first)
      for (const char c : alphabet) all.push_back(all[first] + c);
  }
  return all;
}

TEST(Glob, MatchesByItsDefinition) {
  const auto texts = words("ab.", 4);
  for (const std::string& glob : words("ab*?", 4))
    for (const std::string& text : texts)
      ASSERT_EQ(matches_glob(glob, text), by_definition(glob, text)) << "'" << glob << "' of '" << text << "'";
}

TEST(Glob, OfParameterNames) {
  EXPECT_TRUE(matches_glob("h.*.bias", "h.11.attn.c_attn.bias"));
  EXPECT_FALSE(matches_glob("h.*.bias", "ln_f.bias"));
  EXPECT_TRUE(matches_glob("h.?.mlp.*", "h.3.mlp.c_fc.weight"));
  EXPECT_FALSE(matches_glob("h.?.mlp.*", "h.13.mlp.c_fc.weight"));
}

}  // namespace
}  // namespace foreshard
