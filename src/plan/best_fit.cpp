#include "plan/best_fit.hpp"

#include <algorithm>

namespace foreshard::plan {
namespace {

constexpr std::uint32_t stretch_ops = 64;

std::uint32_t first_stretch(const Interval& alive) { return alive.birth / stretch_ops; }
std::uint32_t last_stretch(const Interval& alive) { return alive.end / stretch_ops; }
bool is_local(const Interval& alive) { return last_stretch(alive) <= first_stretch(alive) + 1; }

void insert_by_offset(auto& list, const auto& placed) {
  const auto position =
      std::ranges::upper_bound(list, placed.offset, {}, [](const auto& other) { return other.offset; });
  list.insert(position, placed);
}

}  // namespace

/// Adds those of `list` that overlap. Without branches: which ones is hard to guess.
void BestFit::meet(const ByOffset& list, const Interval& alive) {
  if (list.empty()) return;
  if (met_.size() <= lists_.size()) met_.resize(lists_.size() + 1);
  auto& met = met_[lists_.size()];
  if (met.size() < list.size()) met.resize(2 * list.size());
  std::size_t count = 0;
  for (const Placed& placed : list) {
    met[count] = &placed;
    count += static_cast<std::size_t>((placed.alive.end > alive.birth) & (alive.end > placed.alive.birth));
  }
  lists_.push_back(std::span(met).first(count));
}

std::int64_t BestFit::best_by_intervals(const Request& request) {
  lists_.clear();
  for (const Interval& alive : request.alive) {
    if (!is_local(alive)) {
      meet(all_, alive);
      continue;
    }
    meet(wide_, alive);
    for (std::uint32_t i = first_stretch(alive); i <= last_stretch(alive) && i < stretches_.size(); ++i)
      meet(stretches_[i], alive);
  }
  std::erase_if(lists_, [](const auto& list) { return list.empty(); });
  Gap gap{request.size_bytes, bottom_};
  while (lists_.size() > 1) {
    const auto lowest = std::ranges::min_element(lists_, {}, [](const auto& list) { return list.front()->offset; });
    gap.see(lowest->front()->offset, lowest->front()->end);
    *lowest = lowest->subspan(1);
    if (lowest->empty()) lists_.erase(lowest);
  }
  for (const auto& list : lists_)
    for (const Placed* placed : list) gap.see(placed->offset, placed->end);
  return gap.offset();
}

void BestFit::insert(const Request& request, std::int64_t offset) {
  insert_by_offset(buffers_, PlacedBuffer{offset, offset + request.size_bytes, request.buffer});
  for (const Interval& alive : request.alive) {
    const Placed placed{offset, offset + request.size_bytes, alive};
    insert_by_offset(all_, placed);
    if (!is_local(alive)) {
      insert_by_offset(wide_, placed);
      continue;
    }
    if (stretches_.size() <= last_stretch(alive)) stretches_.resize(last_stretch(alive) + 1);
    for (std::uint32_t i = first_stretch(alive); i <= last_stretch(alive); ++i) insert_by_offset(stretches_[i], placed);
  }
}

}  // namespace foreshard::plan
