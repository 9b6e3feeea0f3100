#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "model/batch_shape.hpp"
#include "model/graph.hpp"

namespace foreshard::model {

/// What is known of a part of a model that nobody describes operator by operator. All but the parameters is for one
/// sample.
struct ProfiledUnit {
  std::string name;
  std::int64_t parameters = 0;
  std::int64_t forward_flops = 0, backward_flops = 0;
  std::int64_t activation_bytes = 0;  ///< kept for backward, in whatever types; its input included
  std::int64_t output_values = 1;     ///< what it hands on
  std::int64_t operators = 1;         ///< equal ones, as which PyTorch runs it
  /// Its forward stops PyTorch's host until the device has done it, as SyncBatchNorm's does (it selects by a mask;
  /// torch/nn/modules/_functions.py).
  bool waits = false;
};

/// A model by its profile: units one after the other, each of one opaque operator. A sequence is a sample of one token.
struct ProfileConfig {
  std::string name;
  std::vector<ProfiledUnit> units;
  ProfiledUnit head;  ///< of the root, last; the loss is on what it hands on
  /// Of tables that the ranks hold an equal part of each, besides what is sharded here; for PyTorch only.
  std::int64_t tables_bytes = 0;
  double part_of_peak = 0.5;  ///< of a device's peak that the operators' FLOPs reach
};

/// Everything wrong with a configuration, one sentence each; empty when it can be built.
std::vector<std::string> problems(const ProfileConfig& config, const BatchShape& shape);

/// The forward graph: unit 0 (root) holds the head, unit i + 1 the i-th unit. Parameters are called as their units,
/// with ".weight". Of `shape` only the batch counts.
Graph build_profile(const ProfileConfig& config, const BatchShape& shape, DType dtype = DType::f32);

}  // namespace foreshard::model
