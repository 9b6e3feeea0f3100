#include "sim/runtimes/regrouped.hpp"

#include <algorithm>
#include <utility>

namespace foreshard::sim::torch {

Regrouped::Regrouped(const UnitShapes& shapes, int blocks, const Make& make) {
  const auto size = static_cast<std::size_t>(blocks);
  places_.resize(shapes.size()), of_blocks_.resize(shapes.size());
  for (std::size_t at = 0; at < shapes.size(); ++at) {
    Place& place = places_[at];
    place.unit = at == 0 || size == 0 ? 0 : (at - 1) / size + 1;
    place.begins = at == 0 || (size > 0 && (at - 1) % size == 0);
    place.ends = at == 0 || (size > 0 && (at % size == 0 || at + 1 == shapes.size()));
  }
  UnitShapes units(places_.back().unit + 1);
  const std::vector<ParameterShape>& root = shapes.front();
  const auto tables = std::ranges::find(root, 1, &ParameterShape::cols);
  for (auto shape = root.begin(); shape != tables; ++shape) add(units, 0, *shape);
  for (std::size_t at = 1; at < shapes.size(); ++at)
    for (const ParameterShape& shape : shapes[at]) add(units, at, shape);
  for (auto shape = tables; shape != root.end(); ++shape) add(units, 0, *shape);
  units_ = make(units);
}

void Regrouped::add(UnitShapes& units, std::size_t block, const ParameterShape& shape) {
  std::vector<ParameterShape>& unit = units[places_[block].unit];
  places_[block].parameters.push_back(unit.size());
  unit.push_back(shape);
}

Wrapper::Tensors Regrouped::before_forward(std::size_t block, Tensors inputs) {
  return places_[block].begins ? units_->before_forward(places_[block].unit, std::move(inputs)) : inputs;
}

void Regrouped::after_forward(std::size_t block, const Tensors& outputs) {
  if (places_[block].ends) units_->after_forward(places_[block].unit, outputs);
  if (block == 0)
    for (auto& parameters : of_blocks_) parameters.clear();
}

const std::vector<Tensor>& Regrouped::parameters(std::size_t block) const {
  const std::vector<Tensor>& all = units_->parameters(places_[block].unit);
  std::vector<Tensor>& own = of_blocks_[block];
  own.clear();
  for (const std::size_t parameter : places_[block].parameters) own.push_back(all[parameter]);
  return own;
}

}  // namespace foreshard::sim::torch
