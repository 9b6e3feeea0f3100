#include "train/training_rank.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/hash.hpp"
#include "engine/step_sums.hpp"
#include "exec/run_plan.hpp"
#include "plan/query.hpp"
#include "train/agreement.hpp"
#include "train/initial_values.hpp"

namespace foreshard::train {
namespace {

plan::ArenaRange workspace_of(const plan::Plan& plan) {
  if (!plan.workspace.valid()) return {};
  const plan::Buffer& buffer = plan.buffers[plan.workspace.value];
  return {buffer.offset_bytes, buffer.size_bytes};
}

}  // namespace

TrainingRank::TrainingRank(const plan::Settings& settings, DType dtype, std::uint64_t seed,
                           comm::Communicator& communicator, const OptimizerSettings& optimizer,
                           const engine::MakeEngine& make_engine)
    : communicator_(communicator),
      seed_(seed),
      optimizer_(optimizer),
      graph_(model::build(settings.model, settings.batch, dtype)),
      rules_(parameter_rules(graph_, optimizer.groups, optimizer.weight_decay)),
      plans_(graph_, settings),
      evaluation_(plan::build_evaluation_plan(graph_, settings.mesh, settings.schedule)),
      engine_(make_engine({.mesh = settings.mesh,
                           .communicator = communicator,
                           .device_bytes = arena_bytes(plan::Space::device),
                           .host_bytes = arena_bytes(plan::Space::host),
                           .workspace = workspace_of(plans_.whole())})),
      skipped_steps_(plans_.all().size()),
      scaler_(optimizer.loss_scale) {
  for (const plan::Plan& plan : plans_.all()) expect_same_plan(communicator, plan);
  expect_same_plan(communicator, evaluation_);
  expect_same_parameters(communicator, graph_);
  for (std::uint32_t unit = 0; unit < plan().units.size(); ++unit)
    change(parameter_shard(unit), [&](std::span<std::byte> shard) {
      fill_initial_shard(graph_, plan(), unit, communicator.rank(), seed, shard.data());
    });
  communicator.barrier();
}

std::int64_t TrainingRank::arena_bytes(plan::Space space) const {
  std::int64_t bytes = evaluation_.arena_bytes_of(space);
  for (const plan::Plan& plan : plans_.all()) bytes = std::max(bytes, plan.arena_bytes_of(space));
  return bytes;
}

void TrainingRank::count_updates(std::int64_t step) {
  const std::vector<std::int64_t> updates = plans_.updates(step, skipped_steps_);
  for (std::size_t parameter = 0; parameter < rules_.size(); ++parameter) rules_[parameter].update = updates[parameter];
}

exec::StepContext TrainingRank::context(std::int64_t step, double learning_rate, const Batch& batch) const {
  return {.step = step,
          .dropout_key = Hash().add(seed_).add(step).value(),
          .stochastic_rounding = optimizer_.stochastic_rounding,
          .rounding_key = Hash().add(seed_).add(step).add("rounding").value(),
          .learning_rate = learning_rate,
          .beta1 = optimizer_.beta1,
          .beta2 = optimizer_.beta2,
          .epsilon = optimizer_.epsilon,
          .momentum = optimizer_.momentum,
          .nesterov = optimizer_.nesterov,
          .rules = rules_,
          .loss_scale = scaler_.scale(),
          .max_norm = optimizer_.max_norm,
          .clip_value = optimizer_.clip_value,
          .tokens = batch.tokens,
          .targets = batch.targets,
          .images = batch.images};
}

StepResult TrainingRank::step(std::int64_t step, double learning_rate, const Batch& batch, trace::Recorder* recorder) {
  count_updates(step);
  const exec::StepContext now = context(step, learning_rate, batch);
  const plan::Plan& plan = plans_.of(step);
  StepResult result{.start_ns = now_ns()};
  engine_->begin_step(plan, now, recorder);
  exec::run_plan(plan, *engine_);
  result.duration_ns = now_ns() - result.start_ns;

  const std::vector<std::byte> norm = copy_of(plan, plan.norm), loss = copy_of(plan, plan.loss);
  const std::span words(reinterpret_cast<const std::int64_t*>(norm.data()),
                        static_cast<std::size_t>(plan.norm_words()));
  const engine::StepSums sums =
      engine::step_sums(plan.norm_power, words, reinterpret_cast<const double*>(loss.data()), now.loss_scale);
  result.valid_tokens = sums.tokens;
  result.loss = sums.loss / sums.tokens;
  result.grad_norm = sums.gradient_norm;
  result.finite = sums.finite();
  if (!result.finite) ++skipped_steps_[plans_.kind_of(step)];
  skipped_in_a_row_ = result.finite ? 0 : skipped_in_a_row_ + 1;
  scaler_.update(result.finite);
  return result;
}

void TrainingRank::restore(const UpdateState& state) {
  skipped_steps_ = state.skipped_steps;
  skipped_steps_.resize(plans_.all().size());
  skipped_in_a_row_ = state.skipped_in_a_row;
  if (scaler_.dynamic()) scaler_.restore(state.scaler);
}

std::pair<double, double> TrainingRank::evaluate(const Batch& batch) {
  const exec::StepContext now = context(0, 0, batch);
  engine_->begin_step(evaluation_, now, nullptr);
  exec::run_plan(evaluation_, *engine_);
  const std::vector<std::byte> bytes = copy_of(evaluation_, evaluation_.loss);
  const auto* loss = reinterpret_cast<const double*>(bytes.data());
  return {loss[0], loss[1]};
}

void TrainingRank::read(plan::BufferId buffer, const engine::Engine::Read& f) const {
  buffer.valid() ? engine_->read(plan().buffers[buffer.value], f) : f({});
}

void TrainingRank::change(plan::BufferId buffer, const engine::Engine::Change& f) {
  buffer.valid() ? engine_->change(plan().buffers[buffer.value], f) : f({});
}

void TrainingRank::change_scratch(const engine::Engine::Change& f) {
  const plan::ArenaRange range = plan::longest_transient_range(plan());
  engine_->change({.size_bytes = range.size_bytes, .offset_bytes = range.offset_bytes}, f);
}

std::vector<std::byte> TrainingRank::copy_of(plan::BufferId buffer) const {
  return buffer.valid() ? copy_of(plan(), buffer) : std::vector<std::byte>();
}

std::vector<std::byte> TrainingRank::copy_of(const plan::Plan& plan, plan::BufferId buffer) const {
  std::vector<std::byte> copy;
  engine_->read(plan.buffers[buffer.value],
                [&](std::span<const std::byte> bytes) { copy.assign(bytes.begin(), bytes.end()); });
  return copy;
}

}  // namespace foreshard::train
