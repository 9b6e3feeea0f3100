#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "base/error.hpp"
#include "model/hf_config.hpp"

namespace foreshard::model {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Json> shipped_files() {
  std::vector<Json> files;
  for (const auto& entry : std::filesystem::directory_iterator(FORESHARD_TEST_DATA "/configs"))
    if (std::ifstream file(entry.path()); file) files.push_back(Json::parse(file));
  return files;
}

/// Values of every type, at and beyond the ends of what sizes can be.
const std::vector<Json>& nasty_values() {
  static const std::vector<Json> values{nullptr,
                                        true,
                                        "",
                                        "text",
                                        std::string(100'000, 'x'),
                                        "\u00e9\u20ac",
                                        0,
                                        -1,
                                        1,
                                        3,
                                        1.5,
                                        -0.0,
                                        1e-320,
                                        1.7e308,
                                        INT32_MAX,
                                        std::int64_t{INT32_MAX} + 1,
                                        INT64_MIN,
                                        INT64_MAX,
                                        UINT64_MAX,
                                        Json::array(),
                                        Json::array({1, 2}),
                                        Json::object(),
                                        {{"rope_theta", -1}, {"type", 3}, {"rope_type", Json::object()}},
                                        {{"alibi", "no"}, {"qk_ln", 3}}};
  return values;
}

/// What is read must be either refused with the file's name, or have sizes whose problems can be told.
std::string refusal_of(const std::string& text) {
  try {
    const HfModel model = hf_model_of(HfConfigFile::parse(text, "job/config.json"));
    problems_of(model.config, {1, 1});
    dimensions(model.config);
    return "";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("job/config.json"));
    return error.what();
  }
}

TEST(HfConfigFuzz, EachKeyWithEachValueIsReadOrNamed) {
  for (const Json& file : shipped_files())
    for (const auto& item : file.items())
      for (const Json& value : nasty_values()) {
        Json changed = file;
        changed[item.key()] = value;
        const std::string refusal = refusal_of(changed.dump());
        if (!refusal.empty()) {
          EXPECT_THAT(refusal, testing::HasSubstr(item.key())) << value.dump().substr(0, 50);
        }
        EXPECT_LT(refusal.size(), 2000U);
      }
}

TEST(HfConfigFuzz, ManyKeysAtOnceNeverEndOtherwise) {
  std::mt19937 random(1);
  const auto files = shipped_files();
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    Json file = files[below(files.size())];
    for (auto& item : file.items())
      if (item.key() != "model_type" && below(6) == 0) item.value() = nasty_values()[below(nasty_values().size())];
    refused += !refusal_of(file.dump()).empty();
  }
  EXPECT_GT(refused, 500);
  EXPECT_LT(refused, 3000);
}

TEST(HfConfigFuzz, DamagedTextNeverEndsOtherwise) {
  std::mt19937 random(2);
  const auto files = shipped_files();
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (int i = 0; i < 3000; ++i) {
    std::string text = files[below(files.size())].dump();
    for (std::size_t flips = below(4); flips > 0; --flips) text[below(text.size())] = static_cast<char>(below(256));
    if (below(3) == 0) text.resize(below(text.size()));
    refusal_of(text);
  }
}

}  // namespace
}  // namespace foreshard::model
