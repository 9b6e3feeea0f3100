// Models that Hugging Face saved compute here what they computed there (tests/golden/make_weights_golden.py), however
// many ranks read their shards of them.
#include "train/model_weights.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/half.hpp"
#include "local_run.hpp"
#include "train/elements.hpp"
#include "train/weights_export.hpp"

namespace foreshard::parity {
namespace {

const std::string folder = FORESHARD_GOLDEN_DIR "/weights";
constexpr std::int64_t vocab = 23, positions = 6;

struct Saved {
  std::string name, path;
  model::Config model;
};
void PrintTo(const Saved& saved, std::ostream* out) { *out << saved.name; }

const model::LlamaConfig llama{.layers = 2,
                               .width = 12,
                               .heads = 2,
                               .vocab_size = vocab,
                               .max_seq_len = positions,
                               .ffn_width = 20,
                               .kv_heads = 1,
                               .norm_epsilon = 1e-6};

const model::VitConfig vit{
    .layers = 2, .width = 8, .heads = 2, .ffn_width = 12, .patches = 4, .patch_values = 48, .classes = 3};

/// As the script makes them.
train::Batch vit_images() {
  train::Batch batch;
  for (std::int64_t n = 0; n < 6; ++n) {
    batch.targets.push_back(static_cast<std::int32_t>(3 * n % 3));
    for (std::int64_t i = 0; i < 4 * 48; ++i)
      batch.images.push_back(static_cast<float>((7 * i * i + 3 * i + 31 * n) % 256) / 127.5F - 1);
  }
  return batch;
}

bool is_of_images(const Saved& saved) { return std::holds_alternative<model::VitConfig>(saved.model); }

std::vector<Saved> all_saved() {
  const model::GptConfig gpt2{.layers = 2, .width = 8, .heads = 2, .vocab_size = vocab, .max_seq_len = positions};
  const model::MptConfig mpt{.layers = 2, .width = 12, .heads = 3, .vocab_size = vocab, .max_seq_len = positions};
  const model::T5Config t5{.layers = 2, .width = 10, .heads = 2, .vocab_size = vocab, .head_width = 4, .ffn_width = 12};
  return {{"gpt2", folder + "/gpt2/model.safetensors", gpt2},
          {"llama", folder + "/llama", llama},
          {"llama_index", folder + "/llama/model.safetensors.index.json", llama},
          {"mpt", folder + "/mpt", mpt},
          {"t5", folder + "/t5", t5},
          {"vit", folder + "/vit", vit}};
}

const nlohmann::json& golden() {
  static const auto json = nlohmann::json::parse(std::ifstream(folder + ".json"));
  return json;
}

class SavedWeights : public testing::TestWithParam<Saved> {};

/// One step of learning rate 0, of which the loss is that of the weights.
Outcome loaded(const Saved& saved, const plan::Mesh& mesh, DType dtype, const std::string& written = "",
               bool kept_in_bf16 = false) {
  RunSetup setup{.settings = settings_of(saved.model, golden().at("seq"), golden().at("batch"), mesh), .dtype = dtype};
  setup.reference = dtype == DType::f64;
  if (kept_in_bf16) setup.settings.schedule.precision.parameters = setup.settings.schedule.master = DType::bf16;
  setup.learning_rates = {0};
  setup.batch = [images = is_of_images(saved)](std::int64_t) {
    return images ? vit_images() : train::Batch{golden().at("tokens"), golden().at("targets")};
  };
  setup.before_step = [&](train::TrainingRank& rank, int index, std::int64_t) {
    const train::ModelWeights weights(saved.path, saved.model, rank.graph());
    EXPECT_TRUE(weights.unused().empty());
    for (std::uint32_t unit = 0; unit < rank.plan().units.size(); ++unit)
      rank.change(rank.parameter_shard(unit),
                  [&](std::span<std::byte> shard) { weights.fill_shard(rank.plan(), unit, index, shard.data()); });
  };
  if (!written.empty())
    setup.after_step = [&](const StepEnd& end) {
      train::export_weights(written, saved.model, end.communicator, end.rank);
    };
  return run(setup);
}

std::vector<double> values_of(const train::StoredTensor& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.size_bytes));
  train::read_bytes(tensor, 0, bytes);
  const train::Elements elements(bytes.data(), tensor.elements(), *tensor.dtype);
  std::vector<double> values;
  for (std::int64_t i = 0; i < elements.count(); ++i) values.push_back(elements.at(i));
  return values;
}

TEST_P(SavedWeights, HaveTheLossThatPyTorchComputes) {
  const std::string name = GetParam().name.substr(0, GetParam().name.find('_'));
  const double expected = golden().at("loss_sums").at(name).get<double>() / (is_of_images(GetParam()) ? 6 : 30);
  const Outcome one = loaded(GetParam(), {}, DType::f64);
  EXPECT_NEAR(one.losses.at(0), expected, 1e-10);
  for (const plan::Mesh& mesh : {plan::Mesh{1, 1, 2}, plan::Mesh{1, 1, 3}, plan::Mesh{2, 1, 3}})
    EXPECT_EQ(loaded(GetParam(), mesh, DType::f64).weights, one.weights) << mesh.world_size();
  EXPECT_NEAR(loaded(GetParam(), {1, 1, 2}, DType::f32).losses.at(0), expected, 1e-5);
}

TEST_P(SavedWeights, ComeBackAsTheyWere) {
  const auto path = std::filesystem::temp_directory_path() / ("foreshard_weights_" + std::to_string(getpid()));
  const auto original = train::read_safetensors_model(GetParam().path);
  for (const plan::Mesh& mesh : {plan::Mesh{}, plan::Mesh{1, 1, 3}, plan::Mesh{2, 1, 3}, plan::Mesh{2, 1, 1}}) {
    loaded(GetParam(), mesh, DType::f32, path.string());
    const auto back = train::read_safetensors(path);
    ASSERT_EQ(back.size(), original.size());
    for (const auto& [name, tensor] : original) {
      ASSERT_TRUE(back.contains(name)) << name;
      EXPECT_EQ(back.at(name).shape, tensor.shape) << name;
      EXPECT_EQ(back.at(name).type, "F32");
      EXPECT_EQ(values_of(back.at(name)), values_of(tensor)) << name;
    }
  }
  std::filesystem::remove(path);
}

TEST_P(SavedWeights, ComeBackRoundedOnceWhereTheyAreKeptInBf16) {
  const auto path = std::filesystem::temp_directory_path() / ("foreshard_halves_" + std::to_string(getpid()));
  const auto original = train::read_safetensors_model(GetParam().path);
  loaded(GetParam(), {1, 1, 3}, DType::f32, path.string(), true);
  for (const auto& [name, tensor] : train::read_safetensors(path)) {
    EXPECT_EQ(tensor.type, "BF16");
    std::vector<double> rounded = values_of(original.at(name));
    for (double& value : rounded) value = static_cast<double>(BFloat16(value));
    EXPECT_EQ(values_of(tensor), rounded) << name;
  }
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(HuggingFace, SavedWeights, testing::ValuesIn(all_saved()),
                         [](const auto& instance) { return instance.param.name; });

std::string message_of(const model::Config& model) {
  try {
    const train::ModelWeights weights(folder + "/llama", model, model::build(model, {1, 4}));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(SavedWeightsOfAnotherModel, AreRefusedByEveryTensorThatDiffers) {
  model::LlamaConfig other = llama;
  EXPECT_EQ(message_of(other), "");
  other.kv_heads = 2;
  other.qkv_bias = true;
  const std::string text = message_of(other);
  EXPECT_NE(text.find("layers.0.self_attn.k_proj.weight is [6, 12], the model's is [12, 12]"), std::string::npos);
  EXPECT_NE(text.find("layers.0.self_attn.q_proj.bias [12] is missing"), std::string::npos);
  EXPECT_NE(text.find("and 2 more"), std::string::npos) << text;
}

TEST(SavedWeightsOfAnotherModel, AreNamedWhereTheModelHasNoPlaceForThem) {
  model::LlamaConfig smaller = llama;
  smaller.tied_head = true;
  const train::ModelWeights weights(folder + "/llama", smaller, model::build(smaller, {1, 4}));
  EXPECT_EQ(weights.unused(), std::vector<std::string>{"lm_head.weight"});
}

}  // namespace
}  // namespace foreshard::parity
