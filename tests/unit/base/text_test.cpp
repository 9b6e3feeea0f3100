#include "base/text.hpp"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"

namespace foreshard {
namespace {

constexpr std::array<std::string_view, 4> presets{"gpt2", "gpt2-medium", "gpt2-large", "byte-tiny"};

TEST(Nearest, FindsNamesOneOrTwoSlipsAway) {
  EXPECT_EQ(nearest("gpt2-medum", presets), "gpt2-medium");
  EXPECT_EQ(nearest("GPT2_large", presets), "gpt2-large");
  EXPECT_EQ(nearest("gtp2", presets), "gpt2") << "a swap is one edit";
  EXPECT_EQ(nearest("gpt3", presets), "gpt2");
}

TEST(Nearest, IsSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest("llama", presets), "");
  EXPECT_EQ(nearest("", presets), "");
  EXPECT_EQ(nearest("gpt2", std::span<const std::string_view>()), "");
  EXPECT_EQ(did_you_mean("llama", presets), "");
}

TEST(Nearest, IsNotLookedForAmongNamesOfAnotherLength) { EXPECT_EQ(nearest(std::string(1000000, 'g'), presets), ""); }

TEST(Nearest, AsksWithTheName) { EXPECT_EQ(did_you_mean("byte-tny", presets), " Did you mean `byte-tiny`?"); }

TEST(Numbered, ListsOnlyWhenThereAreSeveral) {
  const std::vector<std::string> one{"a"}, two{"a", "b"};
  EXPECT_EQ(numbered("2 problems:", one), "a");
  EXPECT_EQ(numbered("2 problems:", two), "2 problems:\n  1. a\n  2. b");
}

TEST(Trimmed, DropsBlanksAtBothEndsOnly) {
  EXPECT_EQ(trimmed(" \ta b\r\n"), "a b");
  EXPECT_EQ(trimmed("  "), "");
}

TEST(Shortened, KeepsCharactersWhole) {
  EXPECT_EQ(shortened("seven", 5), "seven");
  EXPECT_EQ(shortened("eleven", 5), "eleve…");
  EXPECT_EQ(shortened("5 × 3", 3), "5 …") << "the sign has two bytes";
}

TEST(Utf8Prefix, EndsBeforeTheFirstByteThatIsNone) {
  for (const std::string_view valid : {"", "plain", "5 × 3", "\xEF\xBF\xBD", "\xED\x9F\xBF", "\xF0\x9F\x98\x80"})
    EXPECT_EQ(utf8_prefix(valid), valid.size()) << valid;
  EXPECT_EQ(utf8_prefix("ab\xFFzz"), 2u);
  for (const std::string_view none : {"\x80", "\xC3", "\xC3z", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xE2\x82",
                                      "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80"})
    EXPECT_EQ(utf8_prefix(none), 0u) << none.size();
}

TEST(JsonText, OfBytesThatAreNotTextCanBeReadBack) {
  const nlohmann::json json{{"file", "a\xFF.json"}};
  EXPECT_EQ(nlohmann::json::parse(json_text(json)).at("file"), "a\uFFFD.json");
  EXPECT_EQ(json_text(nlohmann::json{{"a", 1}}, -1), R"({"a":1})");
}

}  // namespace
}  // namespace foreshard
