#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/plan.hpp"
#include "plan/settings.hpp"

namespace foreshard::plan {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string folder = FORESHARD_TEST_DATA "/configs/";

Settings settings_of(std::vector<std::string> words) {
  Config config("foreshard-test");
  add_plan_keys(config);
  std::vector<const char*> arguments{"foreshard-test"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  config.parse(static_cast<int>(arguments.size()), arguments.data());
  return read_settings(config, 2);
}

Settings settings_of_file(const std::string& name, std::vector<std::string> words = {}) {
  words.push_back("--model.config=" + folder + name);
  return settings_of(std::move(words));
}

std::uint64_t hash_of(const Settings& settings) {
  return hash_of(build_plan(model::build(settings.model, settings.batch), settings.mesh, settings.schedule));
}

TEST(SettingsModel, AFilesPlanIsThatOfThePresetOfEqualSizes) {
  EXPECT_EQ(hash_of(settings_of_file("gpt2.json")), hash_of(settings_of({"--model.preset=gpt2"})));
  EXPECT_EQ(hash_of(settings_of_file("byte-llama-tiny.json")),
            hash_of(settings_of({"--model.preset=byte-llama-tiny"})));
  EXPECT_NE(hash_of(settings_of_file("byte-llama-tiny.json", {"--model.layers=3"})),
            hash_of(settings_of({"--model.preset=byte-llama-tiny"})));
}

TEST(SettingsModel, KeysReplaceTheFilesSizesAndSaySo) {
  const Settings settings = settings_of_file(
      "gpt2.json", {"--model.layers=3", "--model.heads=12", "--model.ffn_width=100", "--model.tied_head=false"});
  EXPECT_EQ(model::dimensions(settings.model).layers, 3);
  EXPECT_THAT(settings.model_source.notes,
              AllOf(Contains("model.layers = 3 (from flag) replaces 12"), Not(Contains(HasSubstr("model.heads"))),
                    Contains("model.ffn_width = 100 (from flag) replaces what other sizes give"),
                    Contains("model.tied_head = false (from flag) replaces true")));
}

TEST(SettingsModel, AWindowChangesThePlansOfLongerSequencesAlone) {
  const auto hash = [](std::int64_t seq, const std::string& window) {
    return hash_of(settings_of({"--model.preset=byte-llama-tiny", "--train.seq_len=" + std::to_string(seq), window}));
  };
  EXPECT_EQ(hash(64, "--model.window=64"), hash(64, "--model.window=0"));
  EXPECT_NE(hash(65, "--model.window=64"), hash(65, "--model.window=0"));
  EXPECT_EQ(hash_of(settings_of_file("mistral-7b.json", {"--model.layers=1", "--train.seq_len=8192"})),
            hash_of(settings_of({"--model.preset=mistral-7b", "--model.layers=1", "--train.seq_len=8192"})));
  EXPECT_THAT(
      [] {
        settings_of({"--model.preset=gpt2", "--model.window=64"});
      },
      testing::ThrowsMessage<InputError>(HasSubstr("model.window is set, but attention of GPT's family")));
}

// A resolved configuration has all keys, those at their defaults too.
TEST(SettingsModel, KeysAtTheirDefaultsReplaceNothing) {
  const Settings settings = settings_of_file("qwen2.5-0.5b.json", {"--model.layers=0", "--model.tied_head=preset",
                                                                   "--model.dropout=0", "--model.lora_rank=0"});
  EXPECT_EQ(model::build(settings.model, {1, 1}).parameter_count(), 494'032'768);
  EXPECT_THAT(settings.model_source.notes, Not(Contains(HasSubstr("replaces"))));
}

TEST(SettingsModel, ReportsWhereItCameFrom) {
  EXPECT_EQ(settings_of_file("mistral-7b.json").model_source.family, "mistral");
  EXPECT_EQ(settings_of_file("mistral-7b.json").model_source.from, folder + "mistral-7b.json");
  const Settings preset = settings_of({"--model.preset=llama3-8b", "--model.layers=3", "--train.seq_len=64"});
  EXPECT_EQ(preset.model_source.family, "llama");
  EXPECT_EQ(preset.model_source.from, "preset llama3-8b");
  EXPECT_THAT(preset.model_source.notes, IsEmpty());
}

TEST(SettingsModel, TheLongestSequenceIsAssumedAndNoted) {
  EXPECT_EQ(settings_of_file("llama-3-8b.json").batch.seq, 8192);
  EXPECT_THAT(settings_of_file("llama-3-8b.json").model_source.notes,
              Contains("train.seq_len not given: 8192, the model's longest"));
  EXPECT_THAT(settings_of_file("llama-3-8b.json", {"--train.seq_len=64"}).model_source.notes,
              Not(Contains(HasSubstr("train.seq_len"))));
}

TEST(SettingsModel, LoraKeys) {
  const auto lora_of = [](std::vector<std::string> words) {
    return std::get<model::LlamaConfig>(settings_of_file("byte-llama-tiny.json", std::move(words)).model).lora;
  };
  EXPECT_EQ(lora_of({}).rank, 0);
  EXPECT_EQ(lora_of({"--model.lora_rank=4"}).targets, 0b101);
  EXPECT_EQ(lora_of({"--model.lora_rank=4", "--model.lora_targets=o_proj, up_proj"}).targets, 0b101000);
  EXPECT_EQ(lora_of({"--model.lora_rank=4", "--model.lora_targets=all-linear"}).targets, 0x7F);
}

TEST(SettingsModel, TheBaseOfLoraMayBePacked) {
  const auto base_of = [](const std::string& value) {
    const Settings settings =
        settings_of_file("byte-llama-tiny.json", {"--model.lora_rank=4", "--model.lora_base=" + value});
    return std::get<model::LlamaConfig>(settings.model).lora.base;
  };
  EXPECT_EQ(base_of("none"), model::Packing::none);
  EXPECT_EQ(base_of("nf4"), model::Packing::nf4);
  EXPECT_EQ(base_of("nf4-dq"), model::Packing::nf4_dq);
}

// The base is frozen: it has no gradient and no optimizer state.
TEST(SettingsModel, AStepOfLoraUpdatesItsMatricesAlone) {
  const Settings settings = settings_of_file("byte-llama-tiny.json", {"--model.lora_rank=4"});
  const Plan plan = build_plan(model::build(settings.model, settings.batch), settings.mesh, settings.schedule);
  std::int64_t trained = 0;
  for (const FlatParameter& unit : plan.units)
    for (const FlatPiece& piece : unit.pieces) trained += piece.trainable ? piece.elements : 0;
  EXPECT_EQ(trained, 2 * 4 * ((64 + 64) + (64 + 32)));
}

std::string problems_of(std::vector<std::string> words) {
  try {
    settings_of(std::move(words));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(SettingsModel, WhatDoesNotFitIsNamedWithTheFile) {
  EXPECT_THAT(problems_of({"--model.config=" + folder + "gpt2.json", "--train.seq_len=2000"}),
              AllOf(HasSubstr("train.seq_len is 2000"), HasSubstr("gpt2.json")));
  EXPECT_THAT(problems_of({"--model.config=" + folder + "gpt2.json", "--model.heads=7"}),
              HasSubstr("model.heads is 7"));
  EXPECT_THAT(problems_of({"--model.config=" + folder + "llama-3-8b.json", "--model.preset=gpt2"}),
              HasSubstr("both set"));
  EXPECT_THAT(problems_of({"--model.config=" + folder + "gpt2.json", "--model.preset=gpt2-xl"}),
              AllOf(HasSubstr("both set"), HasSubstr("gpt2-xl")));
  EXPECT_THAT(problems_of({"--model.lora_rank=4"}), HasSubstr("only models of Llama's family have LoRA"));
  EXPECT_THAT(problems_of({"--model.lora_base=nf4"}), HasSubstr("model.lora_base is set, but only models of Llama's"));
  EXPECT_THAT(problems_of({"--model.preset=llama3-8b", "--model.lora_base=nf4"}),
              HasSubstr("model.lora_base is nf4, but model.lora_rank is 0"));
  EXPECT_THAT(problems_of({"--model.preset=llama3-8b", "--model.lora_rank=4", "--model.lora_targets=q_prj"}),
              AllOf(HasSubstr("'q_prj'"), HasSubstr("Did you mean `q_proj`?")));
  EXPECT_THAT(problems_of({"--model.lora_targets=q_proj"}), HasSubstr("model.lora_targets is set, but only models of"));
  EXPECT_THAT(problems_of({"--model.preset=llama3-8b", "--model.lora_targets=q_proj"}),
              HasSubstr("model.lora_targets is set, but model.lora_rank is 0"));
  EXPECT_THAT(problems_of({"--model.preset=vit-b16", "--train.seq_len=64"}), HasSubstr("train.seq_len is set"));
  EXPECT_THAT(problems_of({"--model.preset=vit-b16", "--model.dropout=0.1"}), HasSubstr("dropout of vision"));
  EXPECT_THAT(problems_of({"--model.preset=t5-small", "--model.dropout=0.1"}), HasSubstr("model.dropout is set"));
  EXPECT_THAT(problems_of({"--model.config=" + folder + "profile-example.json", "--model.layers=3"}),
              HasSubstr("model.layers is set, but a profile"));
  EXPECT_THAT(problems_of({"--model.config=" + folder + "none.json"}), HasSubstr("none.json: cannot be read"));
  EXPECT_THAT(problems_of({"--model.config=" + folder + "llama-3-8b.json", "--model.heads=9223372036854775807"}),
              HasSubstr("model.heads"));
}

}  // namespace
}  // namespace foreshard::plan
