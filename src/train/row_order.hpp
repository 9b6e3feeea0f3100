#pragma once
#include "train/stream_options.hpp"

namespace foreshard::train {

/// Which rows of a data set a rank has in which step.
///
/// All rows in order, epoch after epoch, are one endless list, and step s (from 1) takes the next
/// G = world_size · micro_batches · local_batch of it. Of these, rank r has rows [r·R, (r+1)·R), R = micro_batches ·
/// local_batch, and its micro-batch m the rows [m·local_batch, (m+1)·local_batch) of them. So
///   - every row is seen exactly once in each epoch (a step may end one epoch and begin the next);
///   - the rows of a step depend on G alone, not on how it is cut into ranks and micro-batches;
///   - the rows of rank r depend on R alone, not on how it is cut into micro-batches;
///   - two ranks of R rows, in order, have what one rank of 2·R has.
class RowOrder {
 public:
  RowOrder(const StreamOptions& options, std::int64_t rows) : options_(options), rows_(rows) {}

  std::int64_t of_rank() const { return options_.micro_batches * options_.local_batch; }  ///< rows of a step
  std::int64_t of_step() const { return options_.world_size * of_rank(); }
  /// This rank's row `index` of step `step` ≥ 1.
  std::int64_t row(std::int64_t step, std::int64_t index) const;
  /// The first step that reads the last row of epoch 1.
  std::int64_t steps_per_epoch() const { return (rows_ + of_step() - 1) / of_step(); }

 private:
  StreamOptions options_;
  std::int64_t rows_;
};

}  // namespace foreshard::train
