#include "model/model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace foreshard::model {
namespace {

TEST(Model, EveryPresetCanBeBuilt) {
  for (const std::string_view name : presets()) {
    const Config config = preset(name);
    EXPECT_THAT(problems_of(config, {1, 16}), testing::IsEmpty()) << name;
    EXPECT_EQ(build(config, {1, 16}).units.size(), static_cast<std::size_t>(dimensions(config).layers + 1)) << name;
  }
}

// 6 · 124,439,808 + 12 · 12 layers · 768 · 1024 tokens.
TEST(Model, FlopsAreThePalmPapers) {
  EXPECT_EQ(model_flops_per_token(preset("gpt2"), 124'439'808, 1024), 746'638'848.0 + 113'246'208.0);
}

// 12 · 128 wide · (3 layers · 64 + 1 layer · 256 tokens).
TEST(Model, FlopsOfAWindowAreOfItsLength) {
  LlamaConfig config = llama_preset("byte-llama-small");
  const double full = model_flops_per_token(config, 1000, 256);
  config.window = 64, config.full_layers = 1;
  EXPECT_EQ(model_flops_per_token(config, 1000, 256), 6000.0 + 12 * 128 * (3 * 64 + 256));
  EXPECT_EQ(full, 6000.0 + 12 * 128 * 4 * 256);
}

TEST(Model, AnUnknownPresetIsRefusedWithTheNearestName) {
  try {
    preset("gpt2-mediun");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean 'gpt2-medium'?"));
  }
}

}  // namespace
}  // namespace foreshard::model
