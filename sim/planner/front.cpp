#include "sim/planner/front.hpp"

#include <algorithm>
#include <tuple>

namespace foreshard::sim::planner {

bool is_as_good(const Cost& a, const Cost& b, double part) {
  return part * a.seconds <= b.seconds &&
         part * static_cast<double>(a.memory_bytes) <= static_cast<double>(b.memory_bytes) && a.gpus <= b.gpus;
}

void Front::add(const Cost& cost, std::size_t index) {
  if (as_good_as(cost, 1)) return;
  std::erase_if(members_, [&](const Member& member) { return is_as_good(cost, member.cost); });
  members_.push_back({cost, index});
}

std::optional<std::size_t> Front::as_good_as(const Cost& cost, double part) const {
  const auto found =
      std::ranges::find_if(members_, [&](const Member& member) { return is_as_good(member.cost, cost, part); });
  return found == members_.end() ? std::nullopt : std::optional(found->index);
}

std::vector<std::size_t> Front::members() const {
  std::vector<Member> sorted = members_;
  std::ranges::sort(sorted, {}, [](const Member& m) {
    return std::tuple(m.cost.seconds, m.cost.memory_bytes, m.cost.gpus, m.index);
  });
  std::vector<std::size_t> indices;
  for (const Member& member : sorted) indices.push_back(member.index);
  return indices;
}

}  // namespace foreshard::sim::planner
