#pragma once
#include <string>
#include <vector>

#include "model/graph.hpp"

namespace foreshard::plan {

/// What some steps do not use. A trainable parameter without a gradient in a step is *idle*: no traffic of its own, no
/// decay, no update, and the optimizer does not count the step for it.
struct LeftOut {
  std::vector<std::string> blocks;  ///< globs of numbered modules, "h.3": what goes into them comes out unchanged
  std::vector<std::string> frozen;  ///< globs of parameters that are read but not trained
  friend bool operator==(const LeftOut&, const LeftOut&) = default;
};

/// Removes the operators of left-out blocks from a wrapped forward graph, so that what reads a block's result reads
/// its input instead, and marks idle parameters. Units keep their parameters.
model::Graph leave_out(const model::Graph& wrapped, const LeftOut& what);

}  // namespace foreshard::plan
