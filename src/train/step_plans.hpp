#pragma once
#include <vector>

#include "plan/partial_steps.hpp"
#include "plan/plan.hpp"
#include "plan/settings.hpp"

namespace foreshard::train {

/// The plans of a run's steps: one for each kind of step, the first of which uses all parameters. What persists lies at
/// the same place in all of them, so a step may follow another of any kind.
class StepPlans {
 public:
  StepPlans(const model::Graph& graph, const plan::Settings& settings);

  const std::vector<plan::Plan>& all() const { return plans_; }
  const plan::Plan& whole() const { return plans_.front(); }
  const plan::Plan& of(std::int64_t step) const { return plans_[partial_.kind_of(step)]; }
  std::size_t kind_of(std::int64_t step) const { return partial_.kind_of(step); }

  /// By ParameterId, how many of the steps 1 … `last` update it, without `skipped` ones, which are by kind.
  std::vector<std::int64_t> updates(std::int64_t last, const std::vector<std::int64_t>& skipped) const;

 private:
  plan::PartialSteps partial_;
  std::vector<plan::Plan> plans_;
  std::size_t parameters_;
};

}  // namespace foreshard::train
