#include "plan/partial_steps.hpp"

#include <algorithm>

namespace foreshard::plan {
std::vector<LeftOut> PartialSteps::kinds() const {
  std::vector<LeftOut> kinds{{}};
  if (!blocks.empty()) kinds.push_back({.blocks = blocks});
  if (!frozen.empty()) kinds.push_back({.frozen = frozen});
  if (!blocks.empty() && !frozen.empty()) kinds.push_back({blocks, frozen});
  return kinds;
}

std::size_t PartialSteps::index(bool leaves, bool freezes) const {
  const std::size_t with_blocks = blocks.empty() ? 0 : 1, with_frozen = frozen.empty() ? 0 : 1;
  return (leaves ? with_blocks : 0) + (freezes ? with_frozen * (1 + with_blocks) : 0);
}

std::size_t PartialSteps::kind_of(std::int64_t step) const { return index(step % every == 0, step <= frozen_steps); }

std::vector<std::int64_t> PartialSteps::count(std::int64_t last) const {
  const std::int64_t frozen_last = std::min(frozen_steps, last);
  const std::int64_t leaving = last / every, both = frozen_last / every;
  std::vector<std::int64_t> counts(kinds().size());
  counts[index(true, true)] += both;
  counts[index(true, false)] += leaving - both;
  counts[index(false, true)] += frozen_last - both;
  counts[index(false, false)] += last - frozen_last - (leaving - both);
  return counts;
}

}  // namespace foreshard::plan
