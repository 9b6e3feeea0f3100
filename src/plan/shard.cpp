#include <algorithm>

#include "plan/build.hpp"

namespace foreshard::plan {
namespace {

constexpr std::int64_t shard_alignment_bytes = 64;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Elements of which a shard is a multiple, so that it is one of 64 bytes in every type it has.
std::int64_t alignment_of(const model::Graph& graph, const FlatParameter& flat) {
  return shard_alignment_bytes /
         std::min({size_bytes(graph.dtype), size_bytes(flat.gathered), size_bytes(flat.reduced)});
}

FlatParameter flatten(const model::Graph& graph, const model::Unit& unit, int shard_degree) {
  FlatParameter flat{.gathered = graph.dtype, .reduced = graph.dtype};
  for (const model::ParameterId id : unit.parameters) {
    const model::Parameter& parameter = graph.parameters[id.value];
    flat.gathered = graph[parameter.value].dtype;
    flat.reduced = parameter.gradient;
    flat.pieces.push_back({id, flat.elements, parameter.elements()});
    flat.elements += parameter.elements();
  }
  flat.shard_elements = round_up((flat.elements + shard_degree - 1) / shard_degree, alignment_of(graph, flat));
  flat.padded_elements = flat.shard_elements * shard_degree;
  return flat;
}

}  // namespace

std::vector<FlatParameter> shard(const model::Graph& graph, int shard_degree) {
  std::vector<FlatParameter> units;
  units.reserve(graph.units.size());
  for (const model::Unit& unit : graph.units) units.push_back(flatten(graph, unit, shard_degree));
  return units;
}

}  // namespace foreshard::plan
