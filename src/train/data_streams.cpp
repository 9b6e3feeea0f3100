#include "train/data_streams.hpp"

namespace foreshard::train {

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

}  // namespace foreshard::train
