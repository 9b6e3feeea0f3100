#include "train/initial_values.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/half.hpp"
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

constexpr std::int64_t elements_of_thread = 1 << 20;

/// Calls f with parts of [0, count), on as many threads as this process has cores, if there is work for them.
template <class F>
void in_parallel(std::int64_t count, const F& f) {
  const std::int64_t threads =
      std::clamp<std::int64_t>(count / elements_of_thread, 1, std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::jthread> others;
  for (std::int64_t i = 1; i < threads; ++i) others.emplace_back(f, count * i / threads, count * (i + 1) / threads);
  f(0, count / threads);
}

template <class T>
void fill(const model::Graph& graph, const plan::FlatParameter& flat, int rank, std::uint64_t seed,
          std::span<T> shard) {
  std::ranges::fill(shard, T{});
  for (const plan::ShardPart& part : plan::parts_of_shard(flat, rank)) {
    const model::Parameter& parameter = graph.parameters[part.piece->parameter.value];
    const std::uint64_t key = key_of(parameter, seed);
    in_parallel(part.count, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i)
        shard[static_cast<std::size_t>(part.at + i)] = static_cast<T>(value_at(parameter.initial, key, part.first + i));
    });
  }
}

}  // namespace

double initial_value(const model::Parameter& parameter, std::uint64_t seed, std::int64_t index) {
  return value_at(parameter.initial, key_of(parameter, seed), index);
}

void fill_initial_shard(const model::Graph& graph, const plan::Plan& plan, std::uint32_t unit, int rank,
                        std::uint64_t seed, void* shard) {
  const plan::FlatParameter& flat = plan.units[unit];
  const auto fill_as = [&]<class T>(T) {
    fill(graph, flat, rank, seed, std::span(static_cast<T*>(shard), static_cast<std::size_t>(flat.shard_elements)));
  };
  switch (plan.master) {
    case DType::f32:
      return fill_as(float{});
    case DType::f64:
      return fill_as(double{});
    default:
      FORESHARD_EXPECT(plan.master == DType::bf16, "parameters are kept in f32, f64 or bf16");
      return fill_as(BFloat16{});
  }
}

}  // namespace foreshard::train
