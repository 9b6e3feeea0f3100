#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "train/training_rank.hpp"

namespace foreshard::parity {

using Tensors = std::map<std::string, std::vector<double>>;  ///< whole parameters by name

/// A step that one rank has done; collective calls are allowed.
struct StepEnd {
  train::TrainingRank& rank;
  comm::Communicator& communicator;
  std::int64_t step;
  const train::Batch& batch;  ///< of this rank
  const train::StepResult& result;
};

/// A training run of all ranks as threads of this process.
struct RunSetup {
  plan::Settings settings;
  DType dtype = DType::f64;
  bool reference = true;                       ///< reference kernels, else cpu
  std::function<engine::MakeEngine()> engine;  ///< empty: processor cores, or what `on_engine_under_test` says
  std::uint64_t seed = 7;
  std::vector<double> learning_rates = std::vector<double>(10, 1e-2);
  train::OptimizerSettings optimizer;
  /// All rows of a step, `global_batch` × `seq`, by step from 1.
  std::function<train::Batch(std::int64_t step)> batch;
  std::function<void(int rank, const plan::Op&)> before_op;  ///< empty, or called by each lane
  /// Empty, or called by each rank around each step.
  std::function<void(train::TrainingRank&, int rank, std::int64_t step)> before_step;
  std::function<void(const StepEnd&)> after_step;
  /// Empty, or instead of the initial value: of an element of a parameter.
  std::function<double(const model::Parameter&, std::int64_t index)> initial;
  trace::Recorder* recorder = nullptr;  ///< of rank 0
};

struct Outcome {
  std::vector<double> losses, grad_norms;
  Tensors first_gradients;  ///< after step 1, summed over tokens
  Tensors weights;          ///< after the last step
  comm::Counters counters;  ///< of rank 0
};

/// Settings of a mesh's ranks, whose step is `global_rows` rows in `micro_batches` parts.
plan::Settings settings_of(const model::Config& model, std::int64_t seq, std::int64_t global_rows,
                           const plan::Mesh& mesh, int micro_batches = 1);

/// All ranks share one copy of the model, or each has its own.
inline plan::Mesh full_shard(int world) { return {.inner = world}; }
inline plan::Mesh no_shard(int world) { return {.replicas = world}; }

/// Tokens (3i² + 7i + step·11) mod vocabulary, each the target of the one before; every `ignore_every`-th target is
/// ignored.
train::Batch formula_batch(std::int64_t rows, std::int64_t seq, std::int64_t vocab, std::int64_t step,
                           int ignore_every = 0);

Outcome run(const RunSetup& setup);

/// The setup on the engine that a program's suites are about: as it is (on_processor_cores.cpp), or what the program
/// defines instead. `run` asks it.
RunSetup on_engine_under_test(const RunSetup& setup);

/// Largest difference of an element, relative to the largest element of its tensor; 1 if names differ.
double distance(const Tensors& a, const Tensors& b);

}  // namespace foreshard::parity
