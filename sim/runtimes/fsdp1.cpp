#include "sim/runtimes/fsdp1.hpp"

#include <algorithm>
#include <utility>

namespace foreshard::sim::torch {
namespace {

std::int64_t round_up(std::int64_t n, std::int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

}  // namespace

Fsdp1::Fsdp1(Eager& eager, const UnitShapes& shapes, const WrapOptions& options) : eager_(eager), options_(options) {
  for (std::size_t at = 0; at < shapes.size(); ++at) {
    Unit& unit = units_.emplace_back();
    add_parameters(unit, shapes[at]);
    unit.shard_elements = round_up(unit.elements, options.world) / options.world;
    unit.shard = eager.empty(unit.shard_elements, DType::f32);
    unit.whole = eager.empty(0, options.compute);
    unit.leaf->accumulated = [this, at] { after_backward(at); };
  }
}

/// With original parameters each begins at a multiple of 16 bytes of the compute type, and a last piece of padding
/// makes the shards equal; without, the flat parameter is padded outside of it.
void Fsdp1::add_parameters(Unit& unit, const std::vector<ParameterShape>& shapes) {
  const auto pad = [&unit](std::int64_t multiple) {
    const std::int64_t padding = round_up(unit.elements, multiple) - unit.elements;
    if (padding > 0) unit.pieces.push_back(padding), unit.elements += padding;
  };
  for (const ParameterShape& shape : shapes) {
    if (original_parameters()) pad(16 / size_bytes(options_.compute));
    unit.parameters.push_back(unit.pieces.size());
    unit.pieces.push_back(shape.elements());
    unit.elements += shape.elements();
  }
  if (original_parameters()) pad(options_.world);
}

/// One rank computes with its shard, or with a cast of it that dies after forward whatever the strategy.
void Fsdp1::gather(std::size_t at) {
  Unit& unit = units_[at];
  if (unit.is_whole) return;
  unit.is_whole = true;
  const bool casts = options_.compute != DType::f32;
  if (!sharded()) return unit.whole.resize(casts ? unit.elements * size_bytes(options_.compute) : 0);
  options_.on_issue(Collective::all_gather, at);
  Storage cast;
  if (casts) cast = eager_.empty(unit.shard_elements, options_.compute);
  unit.whole.resize(unit.shard_elements * options_.world * size_bytes(options_.compute));
}

void Fsdp1::make_views(Unit& unit) {
  const Tensor flat{unit.whole, unit.elements, options_.compute, {nullptr, 0, unit.leaf}};
  const std::vector<Tensor> pieces = eager_.split(flat, unit.pieces);
  unit.views.clear();
  for (const std::size_t piece : unit.parameters) unit.views.push_back(pieces[piece]);
}

void Fsdp1::reshard(Unit& unit) {
  unit.whole.resize(0);
  unit.is_whole = false;
}

void Fsdp1::begin_forward(std::size_t at) {
  if (at == 0) ++forwards_;
  if (std::exchange(gradients_are_zeroed_, false))
    for (Unit& unit : units_) unit.gradient = Storage{};
  if (units_[at].views.empty()) gather(at), make_views(units_[at]);
  const std::size_t next = at + 1;
  if (options_.forward_prefetch && forwards_ > 1 && next < units_.size()) gather(next), make_views(units_[next]);
}

Tensor Fsdp1::forward(std::size_t at, const Tensor& x, const Forward& run) {
  begin_forward(at);
  const Tensor y = run(x);
  if (!sharded() || (options_.reshard && at != 0)) reshard(units_[at]);
  y.edge.node->pre.emplace_back([this, at] { before_backward(at); });
  return y;
}

void Fsdp1::prefetch(std::size_t at) {
  const std::size_t next = at == 0 ? units_.size() - 1 : at - 1;
  if (next != 0) gather(next);
}

void Fsdp1::before_backward(std::size_t at) {
  gather(at);
  if (options_.backward_prefetch == BackwardPrefetch::pre) prefetch(at);
}

void Fsdp1::after_backward(std::size_t at) {
  units_[at].views.clear();
  if (synchronises_ || options_.reshard) reshard(units_[at]);
  if (options_.backward_prefetch == BackwardPrefetch::post && at != 0) prefetch(at);
  if (synchronises_) reduce(at);
}

Storage Fsdp1::reduction_input(const Unit& unit, const Storage& gradient) const {
  Storage input = gradient;
  if (options_.compute != DType::f32) input = eager_.empty(unit.elements, DType::f32);
  const std::int64_t padded = unit.shard_elements * options_.world;
  return padded == unit.elements ? input : eager_.empty(padded, DType::f32);
}

void Fsdp1::reduce(std::size_t at) {
  Unit& unit = units_[at];
  const Storage gradient = std::exchange(unit.leaf->gradient, {});
  const Storage input = reduction_input(unit, gradient);
  const Storage reduced = sharded() ? eager_.empty(unit.shard_elements, DType::f32) : input;
  if (sharded()) options_.on_issue(Collective::reduce_scatter, at);
  if (options_.replicas > 1) options_.on_issue(Collective::all_reduce, at);
  if (!unit.gradient) unit.gradient = reduced;
}

std::vector<std::int64_t> Fsdp1::updated() const {
  std::vector<std::int64_t> elements;
  for (const Unit& unit : units_) {
    if (!original_parameters()) elements.push_back(unit.shard_elements);
    std::int64_t first = 0;
    for (std::size_t i = 0, next = 0; original_parameters() && i < unit.pieces.size(); first += unit.pieces[i++])
      if (next < unit.parameters.size() && unit.parameters[next] == i) {
        ++next;
        if (first < unit.shard_elements) elements.push_back(std::min(unit.pieces[i], unit.shard_elements - first));
      }
  }
  return elements;
}

void Fsdp1::zero_grad() {
  gradients_are_zeroed_ = true;
  if (original_parameters()) return;
  for (Unit& unit : units_) unit.gradient = Storage{};
}

}  // namespace foreshard::sim::torch
