#include "train/initial_values.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/random.hpp"

namespace foreshard::train {
namespace {

std::uint64_t key_of(const model::Parameter& parameter, std::uint64_t seed) {
  return Hash().add(seed).add(parameter.name).value();
}

double value_at(const model::Initial& initial, std::uint64_t key, std::int64_t index) {
  return initial.constant + (initial.stddev == 0 ? 0 : initial.stddev * normal(key, static_cast<std::uint64_t>(index)));
}

template <class T>
void fill(const model::Graph& graph, const plan::FlatParameter& flat, std::int64_t begin, std::uint64_t seed,
          std::span<T> shard) {
  std::ranges::fill(shard, T{0});
  const std::int64_t end = begin + static_cast<std::int64_t>(shard.size());
  for (const plan::FlatPiece& piece : flat.pieces) {
    const model::Parameter& parameter = graph.parameters[piece.parameter.value];
    const std::uint64_t key = key_of(parameter, seed);
    const std::int64_t from = std::max(begin, piece.offset), to = std::min(end, piece.offset + piece.elements);
    for (std::int64_t i = from; i < to; ++i)
      shard[static_cast<std::size_t>(i - begin)] = static_cast<T>(value_at(parameter.initial, key, i - piece.offset));
  }
}

}  // namespace

double initial_value(const model::Parameter& parameter, std::uint64_t seed, std::int64_t index) {
  return value_at(parameter.initial, key_of(parameter, seed), index);
}

void fill_initial_shard(const model::Graph& graph, const plan::Plan& plan, std::uint32_t unit, int rank,
                        std::uint64_t seed, void* shard) {
  const plan::FlatParameter& flat = plan.units[unit];
  const auto count = static_cast<std::size_t>(flat.shard_elements);
  const std::int64_t begin = flat.shard_elements * plan.mesh.shard_index(rank);
  FORESHARD_EXPECT(plan.dtype == DType::f32 || plan.dtype == DType::f64, "master parameters are f32 or f64");
  if (plan.dtype == DType::f32) return fill(graph, flat, begin, seed, std::span(static_cast<float*>(shard), count));
  fill(graph, flat, begin, seed, std::span(static_cast<double*>(shard), count));
}

}  // namespace foreshard::train
