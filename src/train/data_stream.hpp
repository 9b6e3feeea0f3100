#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace foreshard::train {

/// What a step or an evaluation reads: row after row, micro-batch after micro-batch. Target −1 is to be ignored.
struct Batch {
  std::vector<std::int32_t> tokens;   ///< as many as a row has; none of images
  std::vector<std::int32_t> targets;  ///< one for each token, or for each image
  std::vector<float> images = {};     ///< patches of each image, or none
};

/// Training rows, a pure function of the step: nothing to save, nothing to restore. RowOrder says which.
class TrainingData {
 public:
  virtual ~TrainingData() = default;
  /// This rank's rows of step `step` ≥ 1: all micro-batches, one after the other.
  virtual void read(std::int64_t step, Batch& batch) const = 0;
  virtual std::int64_t rows() const = 0;  ///< of one epoch
  virtual std::int64_t steps_per_epoch() const = 0;
  /// Of the part that this rank has checked. The sum over the ranks is a hash of all data, whatever the number of
  /// ranks.
  virtual std::uint64_t content_hash() const = 0;
  virtual std::string size_text() const = 0;  ///< "1.2 M tokens"
};

/// Validation rows, in order, once: batch i (from 0) is rows [i·P·b, (i+1)·P·b), rank r's the r-th b of them.
class ValidationData {
 public:
  virtual ~ValidationData() = default;
  virtual std::int64_t batches() const = 0;
  virtual void read(std::int64_t index, Batch& batch) const = 0;
};

}  // namespace foreshard::train
