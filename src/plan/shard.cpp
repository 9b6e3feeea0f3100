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

/// Appends the trainable or the frozen parameters of a unit.
FlatRange append(FlatParameter& flat, const model::Graph& graph, const model::Unit& unit, bool trainable) {
  FlatRange range{.first = flat.padded_elements};
  for (const model::ParameterId id : unit.parameters) {
    const model::Parameter& parameter = graph.parameters[id.value];
    if (parameter.trainable != trainable || parameter.is_packed()) continue;
    flat.gathered = graph[parameter.value].dtype;
    flat.reduced = parameter.gradient;
    flat.pieces.push_back({id, range.first + range.elements, parameter.elements(), trainable, parameter.idle});
    range.elements += parameter.elements();
  }
  const std::int64_t shard =
      round_up((range.elements + flat.shard_degree - 1) / flat.shard_degree, alignment_of(graph, flat));
  range.padded_elements = shard * flat.shard_degree;
  flat.elements += range.elements;
  flat.padded_elements += range.padded_elements;
  return range;
}

/// The words of packed parameters.
void append_packed(FlatParameter& flat, const model::Graph& graph, const model::Unit& unit) {
  FlatRange& range = flat.packed;
  for (const model::ParameterId id : unit.parameters) {
    const model::Parameter& parameter = graph.parameters[id.value];
    if (!parameter.is_packed()) continue;
    flat.packed_pieces.push_back({id, range.elements, parameter.packed_words(), false});
    range.elements += parameter.packed_words();
  }
  range.padded_elements = flat.shard_degree * round_up((range.elements + flat.shard_degree - 1) / flat.shard_degree,
                                                       shard_alignment_bytes / model::packed_word_bytes);
}

/// By parameter, whether an operator reads it.
std::vector<bool> read_parameters(const model::Graph& graph) {
  std::vector<bool> read(graph.parameters.size());
  for (const model::Operator& op : graph.operators)
    for (const model::TensorId id : op.inputs)
      if (id.valid() && graph[id].role == model::Role::parameter) read[graph[id].parameter.value] = true;
  return read;
}

FlatParameter flatten(const model::Graph& graph, const model::Unit& unit, int shard_degree) {
  FlatParameter flat{
      .shard_degree = unit.replicated ? 1 : shard_degree, .gathered = graph.dtype, .reduced = graph.dtype};
  flat.trainable = append(flat, graph, unit, true);
  flat.frozen = append(flat, graph, unit, false);
  append_packed(flat, graph, unit);
  flat.shard_elements = flat.shard_of(flat.padded_elements);
  return flat;
}

}  // namespace

std::vector<FlatParameter> shard(const model::Graph& graph, int shard_degree) {
  std::vector<FlatParameter> units;
  units.reserve(graph.units.size());
  const std::vector<bool> read = read_parameters(graph);
  for (const model::Unit& unit : graph.units) {
    units.push_back(flatten(graph, unit, shard_degree));
    units.back().used = std::ranges::any_of(unit.parameters, [&](model::ParameterId id) { return read[id.value]; });
  }
  return units;
}

}  // namespace foreshard::plan
