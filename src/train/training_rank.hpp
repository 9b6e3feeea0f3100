#pragma once
#include <memory>
#include <numeric>
#include <vector>

#include "engine/engine.hpp"
#include "plan/settings.hpp"
#include "train/grad_scaler.hpp"
#include "train/parameter_groups.hpp"
#include "train/step_plans.hpp"
#include "train/token_stream.hpp"

namespace foreshard::train {

struct OptimizerSettings {
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1;
  double max_norm = 1.0;  ///< 0: no clipping
  double momentum = 0;
  bool nesterov = false;
  bool stochastic_rounding = true;  ///< of parameters kept in bf16; else to nearest
  double clip_value = 0;            ///< 0: elements are not cut
  std::vector<ParameterGroup> groups;
  GradScaler::Settings loss_scale;
};

/// What a checkpoint keeps of a rank besides its shards; the same on all ranks.
struct UpdateState {
  /// By kind of step; not finite, so not counted by the optimizer's bias corrections.
  std::vector<std::int64_t> skipped_steps{0};
  std::int64_t skipped_in_a_row = 0;  ///< of all kinds, since the last that was finite
  GradScaler::State scaler;
  friend bool operator==(const UpdateState&, const UpdateState&) = default;
};

/// What one step achieved, the same on all ranks but for the times.
struct StepResult {
  double loss = 0;       ///< mean over the valid tokens of all ranks and micro-batches; NaN without any
  double grad_norm = 0;  ///< of the mean gradient, before clipping
  double valid_tokens = 0;
  bool finite = true;  ///< the verdict; where it is false, the step has changed no parameter and no moment
  std::int64_t start_ns = 0, duration_ns = 0;
};

/// One rank of a training run: its plans, and the engine that carries them out and holds its shards.
class TrainingRank {
 public:
  /// Collective. Builds the plans, makes sure that all ranks have the same (else throws, naming the first difference),
  /// and fills this rank's shards with initial values.
  TrainingRank(const plan::Settings& settings, DType dtype, std::uint64_t seed, comm::Communicator& communicator,
               const OptimizerSettings& optimizer, const engine::MakeEngine& make_engine);

  /// Collective: optimizer step `step` ≥ 1 on this rank's micro-batches. If the loss or the gradient is infinite or not
  /// a number anywhere, all ranks skip the update together: parameters and moments keep their bits, and the optimizer
  /// does not count the step.
  StepResult step(std::int64_t step, double learning_rate, const Batch& batch, trace::Recorder* recorder = nullptr);

  /// Collective: {Σ losses, valid tokens} of one micro-batch of all ranks, with the parameters as they are.
  std::pair<double, double> evaluate(const Batch& batch);

  UpdateState update_state() const { return {skipped_steps_, skipped_in_a_row_, scaler_.state()}; }
  std::int64_t skipped_steps() const { return std::accumulate(skipped_steps_.begin(), skipped_steps_.end(), 0L); }
  void restore(const UpdateState& state);  ///< a fixed loss scale stays as it is
  const GradScaler& scaler() const { return scaler_; }
  /// Where this rank's loss stopped being finite in the last step.
  engine::LossFault loss_fault() const { return engine_->loss_fault(); }

  /// The plan of steps that use all parameters. State lies where it says, in every kind of step.
  const plan::Plan& plan() const { return plans_.whole(); }
  const StepPlans& plans() const { return plans_; }
  const plan::Plan& evaluation_plan() const { return evaluation_; }
  /// The plan of step `step`; of an evaluation for 0.
  const plan::Plan& plan_of(std::int64_t step) const { return step > 0 ? plans_.of(step) : evaluation_; }
  const model::Graph& graph() const { return graph_; }
  const engine::Engine& engine() const { return *engine_; }
  engine::Engine& engine() { return *engine_; }

  // Between two steps: bytes of a buffer of the training plan, as `engine::Engine` gives them; an absent buffer has
  // none. A unit's parameter shard is shard_elements of the plan's master type; its gradient shard is of the trainable
  // range in the last step: summed over tokens, not yet divided or clipped.
  void read(plan::BufferId buffer, const engine::Engine::Read& f) const;
  void change(plan::BufferId buffer, const engine::Engine::Change& f);
  std::vector<std::byte> copy_of(plan::BufferId buffer) const;
  /// The longest part of the device arena that holds nothing, the same on all ranks.
  void change_scratch(const engine::Engine::Change& f);
  plan::BufferId parameter_shard(std::uint32_t unit) const { return plan().units[unit].parameter_shard; }
  plan::BufferId gradient_shard(std::uint32_t unit) const { return plan().units[unit].gradient_shard; }

 private:
  exec::StepContext context(std::int64_t step, double learning_rate, const Batch& batch) const;
  std::int64_t arena_bytes(plan::Space space) const;
  void count_updates(std::int64_t step);
  std::vector<std::byte> copy_of(const plan::Plan& plan, plan::BufferId buffer) const;

  comm::Communicator& communicator_;
  std::uint64_t seed_;
  OptimizerSettings optimizer_;
  model::Graph graph_;
  std::vector<exec::ParameterRule> rules_;
  StepPlans plans_;
  plan::Plan evaluation_;
  std::unique_ptr<engine::Engine> engine_;
  std::vector<std::int64_t> skipped_steps_;  // by kind of step
  std::int64_t skipped_in_a_row_ = 0;
  GradScaler scaler_;
};

}  // namespace foreshard::train
