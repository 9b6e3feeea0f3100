#pragma once
#include <array>
#include <span>

namespace foreshard::sim::cost {

/// A known value at a place given by three positive extents.
struct Known {
  std::array<double, 3> extents;
  double value;
};

/// The value at `extents`, among scattered known ones. Logarithms of the extents are the coordinates and the logarithm
/// of the value is what is averaged. If only the first extent varies among the known, straight lines between
/// neighbours; else the weights fall with the fourth power of distance (Shepard, "A two-dimensional interpolation
/// function for irregularly-spaced data", ACM 1968). Exact at known places, within their range everywhere, constant far
/// outside. `known` is not empty.
double interpolate(std::span<const Known> known, const std::array<double, 3>& extents);

}  // namespace foreshard::sim::cost
