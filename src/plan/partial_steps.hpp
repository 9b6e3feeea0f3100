#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/leave_out.hpp"

namespace foreshard::plan {

/// Which steps leave something out. Steps that leave out the same share a plan.
struct PartialSteps {
  std::vector<std::string> blocks;  ///< left out of every `every`-th step
  std::int64_t every = 2;           ///< at least 2
  std::vector<std::string> frozen;  ///< until step `frozen_steps`, included
  std::int64_t frozen_steps = 0;

  /// What there is to leave out, each once; the first leaves out nothing.
  std::vector<LeftOut> kinds() const;
  /// Index into `kinds()` of what step `step` ≥ 1 leaves out.
  std::size_t kind_of(std::int64_t step) const;
  /// By kind, how many of the steps 1 … `last` are of it.
  std::vector<std::int64_t> count(std::int64_t last) const;

 private:
  std::size_t index(bool leaves, bool freezes) const;
};

}  // namespace foreshard::plan
