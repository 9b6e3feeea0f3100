#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "base/config.hpp"
#include "train/checkpoint_resume.hpp"
#include "train/checkpoint_save.hpp"

namespace foreshard::train {

/// When a run saves, where, and what it begins with.
struct CheckpointSettings {
  std::int64_t freq = 0;       ///< steps; 0 = only when asked by a signal
  std::int64_t keep = 3;       ///< newest ones that stay; 0 = all
  std::filesystem::path dir;   ///< empty: `checkpoints` in the run folder
  std::string resume = "off";  ///< off, auto, or a checkpoint's path
  std::filesystem::path runs;  ///< where `auto` looks without a dir: all runs of run.dir/run.name
};

/// Keys checkpoint.freq, .dir, .resume, .keep.
void add_checkpoint_keys(Config& config);
CheckpointSettings read_checkpoint_settings(const Config& config);

/// The checkpoints of one run, on one rank.
class Checkpoints {
 public:
  /// `facts` has the layout and the configuration of this run.
  Checkpoints(CheckpointSettings settings, comm::Communicator& communicator, TrainingRank& rank, Manifest facts);

  /// Collective, before the first step: loads what checkpoint.resume asks for. Returns the step that it was saved
  /// after, 0 if training begins. A checkpoint.dir that is given must hold no later step, else InputError(usage): they
  /// would be mixed with this run's.
  std::int64_t resume();

  bool due_after(std::int64_t step, std::int64_t last) const;
  /// Collective: saves below `run_folder` (rank 0's counts), unless it was just saved. Returns its path, on rank 0.
  std::filesystem::path save(std::int64_t step, const std::filesystem::path& run_folder);

  /// What is saved from now on as the run's kernel choices.
  void set_choices(std::map<std::string, std::string> choices) { facts_.choices = std::move(choices); }

  const std::optional<Resumed>& resumed() const { return resumed_; }

 private:
  bool leads() const { return communicator_.rank() == 0; }
  void expect_folder() const;
  std::vector<std::filesystem::path> candidates() const;
  void expect_room_after(std::int64_t step) const;
  void tell() const;

  CheckpointSettings settings_;
  comm::Communicator& communicator_;
  TrainingRank& rank_;
  Manifest facts_;
  std::optional<Resumed> resumed_;
  std::int64_t saved_step_ = 0;
  std::filesystem::path saved_;
};

}  // namespace foreshard::train
