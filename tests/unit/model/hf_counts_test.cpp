#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "model/hf_config.hpp"

namespace foreshard::model {
namespace {

using Json = nlohmann::json;

std::int64_t parameters_of(const HfModel& model) { return build(model.config, {1, 1}).parameter_count(); }

std::int64_t shipped(const std::string& name) {
  return parameters_of(read_hf_config(std::string(FORESHARD_TEST_DATA "/configs/") + name));
}

/// Counts of what transformers builds on its meta device: tests/golden/make_hf_parameter_counts.py.
TEST(HfCounts, EqualThoseOfTransformers) {
  std::ifstream file(FORESHARD_GOLDEN_DIR "/hf_parameter_counts.json");
  const Json rows = Json::parse(file);
  ASSERT_EQ(rows.size(), 118U);
  for (const Json& row : rows) {
    const HfModel model = hf_model_of(HfConfigFile::parse(row.at("config").dump(), row.at("name")));
    EXPECT_EQ(parameters_of(model), row.at("parameters").get<std::int64_t>()) << row.dump();
  }
}

/// Counts published with the weights.
TEST(HfCounts, OfTheFilesShippedAreThePublishedOnes) {
  EXPECT_EQ(shipped("gpt2.json"), 124'439'808);
  EXPECT_EQ(shipped("llama-3-8b.json"), 8'030'261'248);
  EXPECT_EQ(shipped("mistral-7b.json"), 7'241'732'096);
  EXPECT_EQ(shipped("qwen2.5-0.5b.json"), 494'032'768);
  EXPECT_EQ(shipped("mpt-7b.json"), 6'649'286'656);
  EXPECT_EQ(shipped("t5-small.json"), 60'506'624);
  EXPECT_EQ(shipped("vit-base-patch16-224.json"), 86'567'656);
}

}  // namespace
}  // namespace foreshard::model
