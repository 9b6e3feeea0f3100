#include "train/data_streams.hpp"

#include "train/image_stream.hpp"

namespace foreshard::train {
namespace {

PatchShape patches_of(const model::VitConfig& model) {
  return {model.patches, model.patch_values, model.classes > 0 ? model.classes : model.width};
}

}  // namespace

StreamOptions stream_options(const plan::Settings& plan, const TrainSettings& train, const comm::Communicator& rank) {
  return {.vocab_size = model::dimensions(plan.model).vocab_size,
          .seq_len = plan.batch.seq,
          .continues = std::holds_alternative<model::T5Config>(plan.model),
          .local_batch = plan.batch.batch,
          .micro_batches = plan.schedule.micro_batches,
          .rank = rank.rank(),
          .world_size = rank.size(),
          .shuffle = train.shuffle,
          .seed = train.seed};
}

std::unique_ptr<TrainingData> open_training_data(const plan::Settings& plan, const TrainSettings& train,
                                                 const comm::Communicator& rank) {
  const auto paths = shard_paths(train.data_path);
  const StreamOptions options = stream_options(plan, train, rank);
  if (const auto* vit = std::get_if<model::VitConfig>(&plan.model))
    return std::make_unique<ImageStream>(paths, options, patches_of(*vit));
  return std::make_unique<TokenStream>(paths, options);
}

std::unique_ptr<ValidationData> open_validation_data(const plan::Settings& plan, const TrainSettings& train,
                                                     const comm::Communicator& rank) {
  if (train.validation_path.empty()) return nullptr;
  const auto paths = shard_paths(train.validation_path);
  const StreamOptions options = stream_options(plan, train, rank);
  if (const auto* vit = std::get_if<model::VitConfig>(&plan.model))
    return std::make_unique<ImageValidation>(paths, options, patches_of(*vit));
  return std::make_unique<ValidationStream>(paths, options);
}

}  // namespace foreshard::train
