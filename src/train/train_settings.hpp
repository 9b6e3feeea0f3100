#pragma once
#include <cstdint>
#include <string>

#include "base/config.hpp"
#include "plan/settings.hpp"
#include "train/checkpoints.hpp"
#include "train/lr_schedule.hpp"
#include "train/training_rank.hpp"

namespace foreshard::train {

/// What a training run needs besides its plan.
struct TrainSettings {
  std::int64_t steps = 0;
  std::uint64_t seed = 0;
  OptimizerSettings optimizer;
  bool skip_nonfinite = false;  ///< go on after a step whose loss or gradient was not finite; else stop
  std::int64_t max_skips = 0;   ///< skipped steps in a row that end the run; 0: never
  LrSchedule schedule;
  std::string weights;                     ///< safetensors to begin with; empty: initial values
  std::string data_path, validation_path;  ///< globs; no validation where empty
  bool shuffle = false;
  std::int64_t validation_freq = 0, validation_batches = 0;
  std::int64_t log_freq = 1;
  bool trace = true;
  std::string trace_file;                        ///< empty: in the run folder
  std::int64_t trace_first = 1, trace_last = 0;  ///< steps that are recorded
  std::int64_t trace_flush_steps = 20;
  CheckpointSettings checkpoint;
  std::string export_path;  ///< of the weights after the last step; empty: they are not exported
  std::string run_dir, run_name;
  bool self_test = true;
  std::int64_t replica_check_freq = 0;  ///< steps; 0: never
  double watchdog_s = 0;                ///< 0: no watchdog
  bool on_cuda = false, graphs = true;  ///< CUDA devices, and whether steps replay graphs there
  int threads = 0;  ///< per rank; 0: the cores it is bound to, else the node's cores divided by its ranks
};

/// Declares the keys of training: train.*, optimizer.*, lr_scheduler.*, data.*, validation.*, metrics.*, trace.*,
/// checkpoint.*, run.*, engine.*.
void add_train_keys(Config& config);

/// Throws InputError(usage) naming every key that does not fit.
TrainSettings read_train_settings(const Config& config);

/// Throws InputError(usage) if a pattern of optimizer.groups matches no parameter of the model.
void expect_groups_match(const TrainSettings& settings, const plan::Settings& plan);

/// Throws InputError(usage) for a model that can be planned but has operators without kernels: profiles,
/// and a base in four bits.
void expect_kernels_exist(const plan::Settings& plan);

/// Throws InputError(usage) for a model of which a kernel on CUDA devices needs more shared memory than a block has on
/// an A100: re-attention of many heads and long sequences.
void expect_fits_devices(const plan::Settings& plan);

}  // namespace foreshard::train
