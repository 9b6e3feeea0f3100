#include "train/step_plans.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace foreshard::train {
namespace {

std::vector<std::int64_t> persistent_offsets(const plan::Plan& plan) {
  std::vector<std::int64_t> offsets;
  for (const plan::Buffer& buffer : plan.buffers)
    if (buffer.persistent) offsets.push_back(buffer.offset_bytes);
  return offsets;
}

}  // namespace

StepPlans::StepPlans(const model::Graph& graph, const plan::Settings& settings)
    : partial_(settings.partial), parameters_(graph.parameters.size()) {
  for (const plan::LeftOut& what : partial_.kinds())
    plans_.push_back(plan::build_plan(graph, settings.mesh, settings.schedule_of(what)));
  for (const plan::Plan& plan : plans_)
    FORESHARD_EXPECT(persistent_offsets(plan) == persistent_offsets(whole()), "what persists lies elsewhere");
}

std::vector<std::int64_t> StepPlans::updates(std::int64_t last, const std::vector<std::int64_t>& skipped) const {
  const std::vector<std::int64_t> steps = partial_.count(last);
  std::vector<std::int64_t> updates(parameters_);
  for (std::size_t kind = 0; kind < plans_.size(); ++kind)
    for (const plan::FlatParameter& unit : plans_[kind].units)
      for (const plan::FlatPiece& piece : unit.pieces)
        if (piece.updated()) updates[piece.parameter.value] += steps[kind] - skipped[kind];
  return updates;
}

}  // namespace foreshard::train
