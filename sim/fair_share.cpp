#include "sim/fair_share.hpp"

#include <algorithm>

namespace foreshard::sim {

std::int64_t fair_level(std::int64_t capacity, std::span<Need> needs) {
  std::ranges::sort(needs, {}, &Need::amount);
  std::int64_t users = 0;
  for (const Need& need : needs) users += need.count;
  for (const Need& need : needs) {
    if (need.amount * users > capacity) return std::max<std::int64_t>(1, capacity / users);
    capacity -= need.amount * need.count;
    users -= need.count;
  }
  return needs.empty() ? 1 : std::max<std::int64_t>(1, needs.back().amount);
}

}  // namespace foreshard::sim
