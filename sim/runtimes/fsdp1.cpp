#include "sim/runtimes/fsdp1.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/runtimes/unit_hooks.hpp"

namespace foreshard::sim::torch {
namespace {

using model::OpKind;

std::int64_t round_up(std::int64_t n, std::int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

}  // namespace

Fsdp1::Fsdp1(Eager& eager, const UnitShapes& shapes, const WrapOptions& options) : eager_(eager), options_(options) {
  for (const auto& unit : shapes) has_frozen_ |= !std::ranges::all_of(unit, &ParameterShape::trained);
  for (std::size_t at = 0; at < shapes.size(); ++at) {
    Unit& unit = units_.emplace_back();
    add_parameters(unit, shapes[at]);
    unit.shard_elements = round_up(unit.elements, options.world) / options.world;
    unit.shard = eager.empty(unit.shard_elements, options.weights);
    unit.whole = eager.empty(0, options.compute);
    if (unit.trained.empty()) continue;
    unit.leaf = std::make_shared<Leaf>();
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
    if (shape.trained) unit.trained.push_back(unit.pieces.size());
    unit.pieces.push_back(shape.elements());
    unit.elements += shape.elements();
  }
  if (original_parameters()) pad(options_.world);
}

Storage Fsdp1::cast_shard(const Unit& unit) {
  if (options_.compute == options_.weights) return {};
  const OnStream on(eager_.gpu(), Stream::pre_unshard);
  eager_.gpu().copies(unit.shard_elements * (4 + size_bytes(options_.compute)), OpKind::cast_shard);
  return eager_.empty(unit.shard_elements, options_.compute);
}

void Fsdp1::wait_for_a_free_unit() {
  if (!options_.limits_gathers || frees_.size() < 2) return;
  eager_.gpu().block(frees_.front());
  frees_.pop_front();
}

/// One rank computes with its shard, or with a cast of it that dies after forward whatever the strategy.
void Fsdp1::gather(std::size_t at) {
  Unit& unit = units_[at];
  if (unit.is_whole) return wait_for_a_free_unit();
  unit.is_whole = true;
  const std::int64_t element = size_bytes(options_.compute);
  if (!sharded()) return unit.whole.resize(options_.compute == options_.weights ? 0 : unit.elements * element);
  options_.on_issue(Collective::all_gather, at);
  const Storage cast = cast_shard(unit);
  eager_.gpu().time().wait(Stream::unshard, Stream::pre_unshard);
  wait_for_a_free_unit();
  const OnStream on(eager_.gpu(), Stream::unshard);
  unit.whole.resize(unit.shard_elements * options_.world * element);
  eager_.gpu().collective(Communicator::shard, OpKind::all_gather, unit.whole.bytes(), at);
  eager_.gpu().used_by(Communicator::shard, unit.whole);
  if (cast) cast.record(Stream::unshard);
}

void Fsdp1::wait_for_gathers() { eager_.gpu().time().wait(Stream::compute, Stream::unshard); }

void Fsdp1::make_views(Unit& unit) {
  const Tensor flat{unit.whole, unit.elements, options_.compute, {nullptr, 0, unit.leaf}};
  const std::vector<Tensor> pieces = eager_.split(flat, unit.pieces);
  unit.views.clear();
  for (const std::size_t piece : unit.parameters) unit.views.push_back(pieces[piece]);
}

void Fsdp1::reshard(Unit& unit) {
  unit.whole.record(Stream::compute);
  unit.whole.resize(0);
  unit.is_whole = false;
  if (options_.limits_gathers) frees_.push_back(eager_.gpu().time().end_of(Stream::compute));
}

/// Gathers see what the optimizer wrote.
void Fsdp1::begin_root() {
  ++forwards_;
  for (const Stream stream : {Stream::pre_unshard, Stream::unshard}) eager_.gpu().time().wait(stream, Stream::compute);
}

/// A flat gradient dies once none of the original parameters has a part of it.
void Fsdp1::drop_gradients() {
  const bool all = std::exchange(gradients_are_zeroed_, false);
  for (Unit& unit : units_)
    if (all || (original_parameters() && trained_in_shard(unit).empty())) unit.gradient = Storage{};
}

void Fsdp1::begin_forward(std::size_t at) {
  if (at == 0) begin_root(), drop_gradients();
  eager_.gpu().enter(at, false);
  if (units_[at].views.empty()) gather(at), make_views(units_[at]);
  wait_for_gathers();
  const std::size_t next = at + 1;
  if (options_.forward_prefetch && forwards_ > 1 && next < units_.size()) gather(next), make_views(units_[next]);
}

Wrapper::Tensors Fsdp1::before_forward(std::size_t at, Tensors inputs) {
  begin_forward(at);
  return inputs;
}

void Fsdp1::after_forward(std::size_t at, const Tensors& outputs) {
  eager_.gpu().enter(0, false);
  units_[at].awaits_backward = true;
  if (!sharded() || (options_.reshard && at != 0)) reshard(units_[at]);
  before_backward_of(outputs, [this, at] { before_backward(at); });
}

void Fsdp1::prefetch(std::size_t at) {
  const std::size_t next = at == 0 ? units_.size() - 1 : at - 1;
  if (next == 0 || !units_[next].awaits_backward) return;
  gather(next);
  units_[next].is_prefetched = true;
}

void Fsdp1::before_backward(std::size_t at) {
  if (!std::exchange(units_[at].awaits_backward, false)) return;
  eager_.gpu().enter(at, true);
  if (!std::exchange(units_[at].is_prefetched, false) || eager_.traits().early_fsdp1) gather(at);
  wait_for_gathers();
  if (options_.backward_prefetch == BackwardPrefetch::pre) prefetch(at);
}

void Fsdp1::after_backward(std::size_t at) {
  eager_.gpu().enter(at, true);
  units_[at].views.clear();
  if (synchronises_ || options_.reshard) reshard(units_[at]);
  if (options_.backward_prefetch == BackwardPrefetch::post && at != 0) prefetch(at);
  if (synchronises_) reduce(at);
  eager_.gpu().enter(0, true);
}

Storage Fsdp1::cast_gradient(const Unit& unit, const Storage& gradient) const {
  if (options_.compute == options_.reduce) return gradient;
  eager_.gpu().copies(unit.elements * (size_bytes(options_.reduce) + size_bytes(options_.compute)), OpKind::cast);
  return eager_.empty(unit.elements, options_.reduce);
}

Storage Fsdp1::padded(const Unit& unit, const Storage& gradient) const {
  const std::int64_t elements = unit.shard_elements * options_.world;
  if (elements == unit.elements && !(eager_.traits().early_fsdp1 && sharded())) return gradient;
  eager_.gpu().copies(2 * gradient.bytes(), OpKind::cast);
  return eager_.empty(elements, options_.reduce);
}

void Fsdp1::reduce(std::size_t at) {
  Gpu& gpu = eager_.gpu();
  Unit& unit = units_[at];
  gpu.time().wait(Stream::reduce, Stream::compute);
  const OnStream on(gpu, Stream::reduce);
  const Storage gradient = std::exchange(unit.leaf->gradient, {});
  gradient.record(Stream::reduce);
  const Storage cast = cast_gradient(unit, gradient), input = padded(unit, cast);
  Storage reduced = sharded() ? eager_.empty(unit.shard_elements, options_.reduce) : input;
  if (sharded()) {
    options_.on_issue(Collective::reduce_scatter, at);
    gpu.copies(2 * input.bytes(), OpKind::cast);  // divided
    gpu.collective(Communicator::shard, OpKind::reduce_scatter, input.bytes(), at);
    for (const Storage& buffer : {input, reduced}) gpu.used_by(Communicator::shard, buffer);
  }
  if (options_.replicas > 1) reduce_over_replicas(at);
  gpu.copies((unit.gradient ? 5 : 2) * reduced.bytes(), OpKind::add);  // divided, and added
  if (options_.reduce != options_.weights) {
    reduced = eager_.empty(unit.shard_elements, options_.weights);
    gpu.copies(unit.shard_elements * (size_bytes(options_.reduce) + size_bytes(options_.weights)), OpKind::cast);
  }
  if (!unit.gradient) unit.gradient = reduced;
}

void Fsdp1::reduce_over_replicas(std::size_t at) {
  Gpu& gpu = eager_.gpu();
  options_.on_issue(Collective::all_reduce, at);
  gpu.time().wait(Stream::replicate, Stream::reduce);
  const OnStream on(gpu, Stream::replicate);
  gpu.collective(Communicator::replica, OpKind::all_reduce, units_[at].shard_elements * size_bytes(options_.reduce),
                 at);
}

void Fsdp1::end_backward() {
  for (const Stream stream : {Stream::reduce, Stream::replicate}) eager_.gpu().time().wait(Stream::compute, stream);
  for (Unit& unit : units_)
    if (!unit.leaf) end_frozen(unit);
}

void Fsdp1::end_frozen(Unit& unit) {
  unit.views.clear();
  if (unit.is_whole && (synchronises_ || options_.reshard)) reshard(unit);
}

/// Elements of each trained parameter of which this rank has a part.
std::vector<std::int64_t> Fsdp1::trained_in_shard(const Unit& unit) const {
  std::vector<std::int64_t> elements;
  std::int64_t first = 0;
  auto next = unit.trained.begin();
  for (std::size_t i = 0; i < unit.pieces.size() && first < unit.shard_elements; first += unit.pieces[i++])
    if (next != unit.trained.end() && *next == i) {
      ++next;
      elements.push_back(std::min(unit.pieces[i], unit.shard_elements - first));
    }
  return elements;
}

std::vector<std::int64_t> Fsdp1::updated() const {
  std::vector<std::int64_t> elements;
  for (const Unit& unit : units_)
    if (original_parameters())
      std::ranges::copy(trained_in_shard(unit), std::back_inserter(elements));
    else
      elements.push_back(unit.shard_elements);
  return elements;
}

void Fsdp1::zero_grad() {
  gradients_are_zeroed_ = true;
  if (original_parameters()) return;
  for (Unit& unit : units_) unit.gradient = Storage{};
}

}  // namespace foreshard::sim::torch
