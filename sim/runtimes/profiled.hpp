#pragma once
#include "model/profile.hpp"
#include "sim/flop_conventions.hpp"
#include "sim/runtimes/wrapper.hpp"

namespace foreshard::sim::torch {

/// A model by its profile: units one after the other, each a module of equal opaque operators with a parameter each.
/// `tables_bytes` are those of one rank.
using Profiled = model::ProfileConfig;

/// Unit 0 is the root with the head.
UnitShapes unit_shapes(const Profiled& profile);

/// The loss on what the head hands on for so many samples, each unit checkpointed if `recompute`.
Tensor profiled_loss(Eager& eager, Wrapper& wrapper, const Profiled& profile, std::int64_t samples,
                     const Storage& input, const Storage& labels, bool recompute);

/// A sample counts as a token; products are what the profile says.
FlopBasis flop_basis(const Profiled& profile, double samples, bool recomputes);

}  // namespace foreshard::sim::torch
