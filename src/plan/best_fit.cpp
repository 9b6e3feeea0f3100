#include "plan/best_fit.hpp"

#include <algorithm>

namespace foreshard::plan {
namespace {

std::ptrdiff_t position_of(const auto& list, std::int64_t offset) {
  return std::ranges::upper_bound(list, offset, {}, [](const auto& other) { return other.offset; }) - list.begin();
}

void insert_by_offset(auto& list, const auto& placed) {
  list.insert(list.begin() + position_of(list, placed.offset), placed);
}

/// Those of `list` that `life` meets on the compute lane. Without branches: which ones is hard to guess.
auto meet(const auto& list, const Lifetime& life, auto& met) {
  if (met.size() < list.size()) met.resize(2 * list.size());
  const std::uint32_t birth = life.birth[0], end = life.compute_end;
  std::size_t count = 0;
  for (const auto& placed : list) {
    met[count] = &placed;
    count += static_cast<std::size_t>((placed.compute_end > birth) & (end > placed.birth));
  }
  return std::span(met).first(count);
}

}  // namespace

std::int64_t BestFit::best_by_compute(const Lifetime& life) {
  if (is_local(life)) return best_nearby(life);
  Gap gap{life.size_bytes, bottom_};
  for (const Placed* placed : meet(all_, life, met_[0])) gap.see(*placed);
  return gap.offset();
}

std::int64_t BestFit::best_nearby(const Lifetime& life) {
  if (stretches_.size() <= last_stretch(life)) stretches_.resize(last_stretch(life) + 1);
  const ByOffset none, &first = stretches_[first_stretch(life)], &last = stretches_[last_stretch(life)];
  std::array lists{meet(wide_, life, met_[0]), meet(first, life, met_[1]),
                   meet(&first == &last ? none : last, life, met_[2])};
  Gap gap{life.size_bytes, bottom_};
  for (;;) {
    std::span<const Placed*>* lowest = nullptr;
    for (auto& list : lists)
      if (!list.empty() && (!lowest || list.front()->offset < lowest->front()->offset)) lowest = &list;
    if (!lowest) return gap.offset();
    gap.see(*lowest->front());
    *lowest = lowest->subspan(1);
  }
}

void BestFit::insert(const Placed& placed, const Lifetime& life, bool simple) {
  lives_.insert(lives_.begin() + position_of(all_, placed.offset), &life);
  insert_by_offset(all_, placed);
  if (!simple || !is_local(life)) return insert_by_offset(wide_, placed);
  if (stretches_.size() <= last_stretch(life)) stretches_.resize(last_stretch(life) + 1);
  for (std::uint32_t i = first_stretch(life); i <= last_stretch(life); ++i) insert_by_offset(stretches_[i], placed);
}

}  // namespace foreshard::plan
