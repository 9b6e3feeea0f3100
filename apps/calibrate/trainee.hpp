#pragma once
#include <vector>

#include "train/training_rank.hpp"

namespace foreshard::calibrate {

/// A training that records its steps, with the kernels that are fastest.
class Trainee {
 public:
  /// Collective.
  Trainee(const plan::Settings& settings, comm::Communicator& communicator, const engine::MakeEngine& make_engine);

  std::vector<trace::Event> step();  ///< collective
  const plan::Plan& plan() const { return rank_.plan(); }
  std::int64_t arena_bytes() const { return rank_.engine().touched_bytes(); }

 private:
  train::Batch batch_;
  train::TrainingRank rank_;
  trace::Recorder recorder_;
  std::int64_t step_ = 0;
};

}  // namespace foreshard::calibrate
