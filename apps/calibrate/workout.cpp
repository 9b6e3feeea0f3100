#include "apps/calibrate/workout.hpp"

namespace foreshard::calibrate {
namespace {

struct Spec {
  std::int64_t layers, width, heads, vocab_size, batch, seq;
  int micro_batches = 1;
  double dropout = 0;
  std::int64_t kv_heads = 0;  // of Llama's family; else of GPT's
};

model::Config model_of(const Spec& spec) {
  if (spec.kv_heads > 0)
    return model::LlamaConfig{.layers = spec.layers,
                              .width = spec.width,
                              .heads = spec.heads,
                              .vocab_size = spec.vocab_size,
                              .max_seq_len = spec.seq,
                              .ffn_width = spec.width * 11 / 4,
                              .kv_heads = spec.kv_heads};
  return model::GptConfig{.layers = spec.layers,
                          .width = spec.width,
                          .heads = spec.heads,
                          .vocab_size = spec.vocab_size,
                          .max_seq_len = spec.seq,
                          .dropout = spec.dropout};
}

plan::Settings settings_of(const Spec& spec, int ranks) {
  plan::Settings settings;
  settings.model = model_of(spec);
  settings.batch = {.batch = spec.batch, .seq = spec.seq};
  settings.mesh = {1, 1, ranks};
  settings.schedule.micro_batches = spec.micro_batches;
  return settings;
}

constexpr Spec quick_specs[] = {{4, 64, 4, 256, 2, 64, 2, 0.1},    {4, 128, 4, 512, 8, 128},
                                {6, 128, 2, 1024, 1, 512},         {4, 256, 8, 4096, 2, 256},
                                {3, 512, 8, 8000, 1, 512},         {1, 768, 12, 16000, 1, 256},
                                {2, 128, 4, 256, 8, 128, 2, 0, 2}, {2, 512, 8, 4000, 1, 512, 1, 0, 4}};
constexpr Spec more_specs[] = {
    {4, 320, 5, 1500, 4, 192, 2, 0.1}, {2, 512, 8, 12000, 1, 1024}, {1, 1024, 16, 32000, 1, 512}};

constexpr Spec quick_gpu_specs[] = {{2, 768, 12, 50257, 8, 1024, 2, 0.1},
                                    {2, 1600, 25, 50257, 4, 1024},
                                    {2, 1024, 16, 16000, 8, 512},
                                    {1, 4096, 32, 32000, 1, 2048, 1, 0, 8}};
constexpr Spec more_gpu_specs[] = {{2, 512, 8, 8000, 4, 256},
                                   {2, 2048, 16, 32000, 4, 2048, 2, 0, 16},
                                   {1, 2560, 32, 50257, 2, 2048},
                                   {2, 768, 12, 50257, 32, 1024}};

}  // namespace

std::vector<plan::Settings> workouts(bool quick) {
  std::vector<plan::Settings> all;
  for (const Spec& spec : quick_specs) all.push_back(settings_of(spec, 1));
  if (quick) return all;
  for (const Spec& spec : more_specs) all.push_back(settings_of(spec, 1));
  return all;
}

std::vector<plan::Settings> gpu_workouts(bool quick) {
  std::vector<plan::Settings> all;
  for (const Spec& spec : quick_gpu_specs) all.push_back(settings_of(spec, 1));
  for (const Spec& spec : more_gpu_specs)
    if (!quick) all.push_back(settings_of(spec, 1));
  for (std::size_t i = 0, count = all.size(); i < count; ++i) {
    all.push_back(all[i]);
    all.back().schedule.precision.parameters = DType::bf16;
  }
  return all;
}

plan::Settings sharded_workout(int ranks) { return settings_of(quick_specs[1], ranks); }

std::vector<plan::Settings> sharded_workouts(int ranks) {
  std::vector<plan::Settings> all;
  for (const int spec : {1, 3, 4, 5}) all.push_back(settings_of(quick_specs[spec], ranks));
  return all;
}

train::Batch batch_of(const plan::Settings& settings) {
  train::Batch batch;
  const std::int64_t count = settings.batch.batch * settings.batch.seq * settings.schedule.micro_batches;
  const auto token = [&](std::int64_t i) {
    const double place = static_cast<double>(i * 2654435761 >> 7 & 0xffff) / 0x10000;
    return static_cast<std::int32_t>(place * place * place *
                                     static_cast<double>(model::dimensions(settings.model).vocab_size));
  };
  for (std::int64_t i = 0; i < count; ++i) batch.tokens.push_back(token(i)), batch.targets.push_back(token(i + 1));
  return batch;
}

}  // namespace foreshard::calibrate
