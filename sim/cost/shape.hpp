#pragma once
#include <array>

#include "model/operator.hpp"

namespace foreshard::sim::cost {

/// What a kernel's time depends on: `work` counts the units that its rate refers to, `extents` are the lengths that the
/// rate depends on, 1 where there are fewer than three.
struct Shape {
  double work = 0;
  std::array<double, 3> extents{1, 1, 1};
};

/// Matrix products: rows·cols·inner; by rows, cols and inner.
/// Attention: batch·heads·seq²·inner; by batch·heads, seq and inner, with inner rounded up to whole vectors of 16.
/// All others move memory: elements touched, by their number. An embedding gradient that overwrites also clears its
/// tables.
Shape shape_of(model::OpKind kind, const model::Sizes& sizes, bool accumulate);

}  // namespace foreshard::sim::cost
