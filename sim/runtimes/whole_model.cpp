#include "sim/runtimes/whole_model.hpp"

#include <algorithm>
#include <numeric>

namespace foreshard::sim::torch {
namespace {

std::int64_t shard_of(std::int64_t elements, int world) { return (elements + world - 1) / world; }

/// Parameters of units that become one tensor each, the blocks' before the root's.
std::vector<std::vector<std::int64_t>> elements_by_unit(const TorchRun& run) {
  std::vector<std::vector<std::int64_t>> units;
  for (const auto& unit : unit_shapes(run.model)) {
    units.emplace_back();
    for (const ParameterShape& shape : unit) units.back().push_back(shape.elements());
  }
  std::rotate(units.begin(), units.begin() + 1, units.end());
  return units;
}

std::int64_t sum_of(const std::vector<std::int64_t>& elements) { return std::reduce(elements.begin(), elements.end()); }

/// What is gathered by one call: FSDP1's flat parameters, FSDP2's parameters.
std::vector<std::int64_t> gathered_together(const TorchRun& run) {
  std::vector<std::int64_t> together;
  for (const auto& unit : elements_by_unit(run))
    if (run.runtime == Runtime::fsdp1)
      together.push_back(sum_of(unit));
    else
      together.insert(together.end(), unit.begin(), unit.end());
  return together;
}

}  // namespace

void load_whole(const TorchRun& run, DType type, Place& place) {
  LiveBytes live{.place = &place};
  const auto units = elements_by_unit(run);
  const auto made = [&](std::int64_t elements) { return Storage(live, elements * size_bytes(type)); };
  std::vector<std::vector<Storage>> whole(units.size());
  for (std::size_t at = 0; at < units.size(); ++at)
    for (const std::int64_t elements : units[at]) whole[at].push_back(made(elements));
  std::vector<Storage> shards;
  for (std::size_t at = 0; at < units.size(); ++at) {
    const Storage flat = run.runtime == Runtime::fsdp1 ? made(sum_of(units[at])) : Storage{};
    if (flat) {
      whole[at].clear();
      shards.push_back(made(shard_of(sum_of(units[at]), run.wrap.world)));
    } else {
      for (const std::int64_t elements : units[at]) shards.push_back(made(shard_of(elements, run.wrap.world)));
      whole[at].clear();
    }
  }
}

void save(const TorchRun& run, allocator::Saving saving, Place& place) {
  const bool fsdp1 = run.runtime == Runtime::fsdp1;
  if (!fsdp1 && saving == allocator::Saving::sharded) return;
  constexpr int values = 3;  // parameters, and two moments
  const std::int64_t element = size_bytes(run.wrap.weights);
  LiveBytes live{.place = &place};
  std::vector<Storage> kept;
  for (int value = 0; value < values; ++value)
    for (const std::int64_t elements : gathered_together(run)) {
      const Storage whole(live, elements * element);
      if (saving == allocator::Saving::sharded) kept.emplace_back(live, shard_of(elements, run.wrap.world) * element);
      if (saving == allocator::Saving::full) kept.push_back(fsdp1 ? Storage(live, elements * element) : whole);
    }
}

}  // namespace foreshard::sim::torch
