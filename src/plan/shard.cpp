#include "plan/build.hpp"

namespace foreshard::plan {
namespace {

constexpr std::int64_t shard_alignment_bytes = 64;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

FlatParameter flatten(const model::Graph& graph, const model::Unit& unit, int shard_degree) {
  FlatParameter flat;
  DType dtype = DType::f32;
  for (const model::ParameterId id : unit.parameters) {
    const model::Parameter& parameter = graph.parameters[id.value];
    dtype = graph[parameter.value].dtype;
    flat.pieces.push_back({id, flat.elements, parameter.elements(), parameter.shape.size() >= 2});
    flat.elements += parameter.elements();
  }
  flat.shard_elements =
      round_up((flat.elements + shard_degree - 1) / shard_degree, shard_alignment_bytes / size_bytes(dtype));
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
