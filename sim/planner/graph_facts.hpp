#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "model/graph.hpp"
#include "plan/plan.hpp"
#include "plan/visits.hpp"

namespace foreshard::sim::planner {

/// A run of operators of one unit and phase, as bounds see it. Indices are of `GraphFacts::visits`.
struct VisitFacts {
  std::uint32_t unit = 0;
  bool backward = false;
  int number = -1;                     ///< among the visits of units other than the root; -1: the root's
  int next_number = 0;                 ///< the first such number from here on
  int previous = -1;                   ///< number of the unit's visit before; -1: none
  bool opens = false, closes = false;  ///< the unit's first visit, its last
  /// Most bytes of activations alive at once, of one sequence; by [whether the unit's parameters are still read]
  /// [whether its gradient has begun]; negative where no operator is at such a time.
  std::array<std::array<double, 2>, 2> live_bytes{{{-1, -1}, {-1, -1}}};
};

/// When a unit's whole parameters and its unsharded gradient are in use, by visit; -1: never.
struct UnitFacts {
  int read_first = -1, read_last = -1;
  int gradient_first = -1, gradient_last = -1;
  int forward_visits = 0, backward_visits = 0;
};

/// Equal compute operators of one sequence.
struct OpFacts {
  plan::Op op;        ///< kind, phase, sizes
  model::Sizes more;  ///< what each further sequence adds to the sizes
  DType dtype = DType::f32;
  double read_bytes = 0, written_bytes = 0;              ///< that grow with the sequences
  double fixed_read_bytes = 0, fixed_written_bytes = 0;  ///< that do not
  int count = 0;
};

/// What bounds need to know of a training graph of one sequence. Those of more sequences follow, since what a second
/// one adds each further one adds too: to activations, tokens and attention's batch, not to parameters.
struct GraphFacts {
  std::vector<VisitFacts> visits;
  std::vector<UnitFacts> units;
  std::vector<int> numbered;                                      ///< by visit number
  std::vector<std::vector<std::uint32_t>> first_read, last_read;  ///< units, by visit
  std::vector<OpFacts> ops;
  std::int64_t seq = 0;
};
/// `two` is the same graph of two sequences.
GraphFacts facts_of(const model::Graph& one, const model::Graph& two);

}  // namespace foreshard::sim::planner
