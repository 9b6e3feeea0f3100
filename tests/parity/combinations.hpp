#pragma once
#include <string>
#include <vector>

#include "local_run.hpp"
#include "pairwise.hpp"

namespace foreshard::parity {

/// Numbers of choices of each dimension of a training run: mesh (of 8 ranks), keep, steps, prefetch, limits,
/// recomputation, precision, offload, units, model. The first choice of each is the plainest.
const std::vector<std::size_t>& choices();

/// A covering set of them.
const std::vector<Combination>& combinations();
std::string text_of(const Combination& combination);

/// Three steps of a small, odd model. Halves make it train in f32 with cpu kernels, else it is in double with reference
/// kernels. On a mesh of its own choice, or on `mesh`.
RunSetup setup_of(const Combination& combination);
RunSetup setup_of(const Combination& combination, const plan::Mesh& mesh);
bool is_mixed(const Combination& combination);

/// The same steps on one rank that has the whole batch, in double.
const Outcome& one_rank(const Combination& combination);

}  // namespace foreshard::parity
