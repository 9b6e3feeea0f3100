#pragma once
#include <string>

#include "base/config.hpp"
#include "model/model.hpp"
#include "model/source.hpp"
#include "plan/build.hpp"

namespace foreshard::plan {

/// What a plan is built from, as the user asked for it.
struct Settings {
  model::Config model;
  model::Source model_source;  ///< notes are to be shown to the user
  model::BatchShape batch;     ///< one micro-batch of one rank
  Mesh mesh;
  ScheduleOptions schedule;  ///< micro_batches included
  PartialSteps partial;      ///< each kind of step has a plan of its own
  std::int64_t cuda_workspace_bytes = std::int64_t{64} << 20;

  /// The same for ranks that are CUDA devices, whose kernels need a workspace.
  Settings on_cuda() const {
    Settings settings = *this;
    settings.schedule.workspace_bytes = cuda_workspace_bytes;
    return settings;
  }

  /// The schedule of steps of a kind.
  ScheduleOptions schedule_of(const LeftOut& what) const {
    ScheduleOptions of_kind = schedule;
    of_kind.left_out = what;
    return of_kind;
  }
  /// Sequences of one optimizer step over all ranks.
  std::int64_t global_batch() const { return batch.batch * schedule.micro_batches * mesh.world_size(); }
  /// Tokens of one optimizer step over all ranks.
  std::int64_t step_tokens() const { return global_batch() * batch.seq; }
};

/// Declares the keys that decide a plan: model.*, parallel.*, train.seq_len, train.local_batch_size,
/// train.global_batch_size, train.norm_type, optimizer.name, optimizer.momentum, engine.workspace_mib.
void add_plan_keys(Config& config);

/// The settings for a run on `world_size` ranks: the preset, then whatever keys override. Throws one InputError(usage)
/// with all that does not fit: model, mesh (with the nearest one that fits), batch, strategies and limits not
/// supported.
Settings read_settings(const Config& config, int world_size);

}  // namespace foreshard::plan
