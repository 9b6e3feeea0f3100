#include "sim/runtimes/profiled.hpp"

#include <algorithm>

namespace foreshard::sim::torch {
namespace {

using model::ProfiledUnit;

std::vector<ParameterShape> shapes_of(const ProfiledUnit& unit) {
  const std::int64_t each = unit.parameters / unit.operators;
  std::vector<ParameterShape> shapes(static_cast<std::size_t>(unit.operators), {each});
  shapes.back().rows += unit.parameters - each * unit.operators;
  return shapes;
}

OpaqueWork part_of(const ProfiledUnit& unit, double part_of_peak, std::int64_t samples) {
  const auto count = static_cast<double>(samples) / static_cast<double>(unit.operators);
  return {.forward_flops = count * static_cast<double>(unit.forward_flops),
          .backward_flops = count * static_cast<double>(unit.backward_flops),
          .part_of_peak = part_of_peak,
          .waits = unit.waits,
          .results = samples * unit.output_values,
          .kept_bytes = samples * unit.activation_bytes / unit.operators};
}

Tensor module(Eager& eager, const std::vector<Tensor>& parameters, const OpaqueWork& work, Tensor x) {
  for (const Tensor& parameter : parameters) x = eager.opaque(x, parameter, work);
  return x;
}

}  // namespace

UnitShapes unit_shapes(const Profiled& profile) {
  UnitShapes shapes{shapes_of(profile.head)};
  for (const ProfiledUnit& unit : profile.units) shapes.push_back(shapes_of(unit));
  return shapes;
}

Tensor profiled_loss(Eager& eager, Wrapper& wrapper, const Profiled& profile, std::int64_t samples,
                     const Storage& input, const Storage& labels, bool recompute) {
  return wrapper.forward(0, {}, [&](const Tensor&) {
    Tensor x{input, samples, DType::f32, {}};
    for (std::size_t unit = 1; unit <= profile.units.size(); ++unit)
      x = wrapper.forward(unit, x, [&](const Tensor& given) {
        const auto run = [&eager, &wrapper, unit, given,
                          work = part_of(profile.units[unit - 1], profile.part_of_peak, samples)] {
          return module(eager, wrapper.parameters(unit), work, given);
        };
        return recompute ? eager.checkpointed(run) : run();
      });
    const Tensor y = module(eager, wrapper.parameters(0), part_of(profile.head, profile.part_of_peak, samples), x);
    return eager.cross_entropy(y, labels);
  });
}

FlopBasis flop_basis(const Profiled& profile, double samples, bool recomputes) {
  FlopBasis basis{.tokens = samples, .recomputes = recomputes};
  const auto add = [&basis](const ProfiledUnit& unit) {
    basis.parameters += static_cast<double>(unit.parameters);
    basis.product_weights += 0.5 * static_cast<double>(unit.forward_flops);
    basis.gradient_weights += 0.5 * static_cast<double>(unit.backward_flops);
  };
  std::ranges::for_each(profile.units, add);
  add(profile.head);
  return basis;
}

}  // namespace foreshard::sim::torch
