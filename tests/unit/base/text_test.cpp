#include "base/text.hpp"

#include <gtest/gtest.h>

#include <array>

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

}  // namespace
}  // namespace foreshard
