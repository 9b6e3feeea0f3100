#include "sim/runtimes/fsdp2.hpp"

#include <algorithm>
#include <utility>

#include "sim/runtimes/unit_hooks.hpp"

namespace foreshard::sim::torch {

using model::OpKind;

Fsdp2::Fsdp2(Eager& eager, const UnitShapes& shapes, const WrapOptions& options) : eager_(eager), options_(options) {
  for (const auto& of_unit : shapes) {
    Unit& unit = units_.emplace_back();
    for (const ParameterShape& shape : of_unit) add_parameter(unit, shape);
  }
}

std::int64_t Fsdp2::padded_rows(const ParameterShape& shape) const {
  return (shape.rows + options_.world - 1) / options_.world * options_.world;
}

void Fsdp2::add_parameter(Unit& unit, const ParameterShape& shape) {
  const std::int64_t shard = padded_rows(shape) / options_.world * shape.cols;
  unit.shapes.push_back(shape);
  unit.shards.push_back(eager_.empty(shard, options_.weights));
  unit.whole.push_back({eager_.empty(0, options_.compute),
                        shape.elements(),
                        options_.compute,
                        {nullptr, 0, shape.trained ? std::make_shared<Leaf>() : nullptr}});
  unit.shard_elements += shard;
  if (shape.trained) unit.trained_elements += shard;
}

void Fsdp2::issue_gather(std::size_t at) {
  Unit& unit = units_[at];
  if (unit.is_whole || unit.gathered) return;
  options_.on_issue(Collective::all_gather, at);
  start_gather(at);
}

/// One rank only marks the gather, and makes its parameters whole when it is waited for.
void Fsdp2::start_gather(std::size_t at) {
  Gpu& gpu = eager_.gpu();
  Unit& unit = units_[at];
  if (options_.world == 1) {
    unit.gathered = eager_.empty(0, options_.compute);
    unit.gather_end = gpu.time().end_of(Stream::compute);
    return;
  }
  const std::int64_t elements =
      unit.shard_elements * options_.world / (unit.kept.empty() ? options_.world : options_.reshard_to);
  const std::int64_t shard_bytes = elements * size_bytes(options_.compute);
  const Stream copy_in = options_.async_gathers ? Stream::compute : Stream::pre_unshard;
  const OnStream on(gpu, copy_in);
  Storage cast;
  if (options_.compute != options_.weights) {
    cast = eager_.empty(elements, options_.compute);
    gpu.copies(elements * size_bytes(options_.weights) + shard_bytes, OpKind::cast_shard);
  }
  unit.gathered = eager_.empty(unit.shard_elements * options_.world, options_.compute);
  gpu.copies(2 * shard_bytes, OpKind::cast_shard);
  gpu.time().wait(Stream::unshard, copy_in);
  const OnStream gathering(gpu, Stream::unshard);
  gpu.collective(Communicator::shard, OpKind::all_gather, unit.gathered.bytes(), at);
  if (options_.async_gathers) gpu.used_by(Communicator::shard, unit.gathered);
  unit.gather_end = gpu.time().end_of(Stream::unshard);
}

/// In forward, gathers that are issued from now on wait for the copy out of the unit before; in backward for this one.
void Fsdp2::gathers_wait_for(Nanoseconds event) {
  for (const Stream stream : {Stream::pre_unshard, Stream::unshard}) eager_.gpu().time().wait(stream, event);
}

void Fsdp2::make_whole(Unit& unit) {
  const bool casts = options_.world == 1 && options_.compute != options_.weights;
  Storage cast;  // of one parameter, until the next one's is there
  for (std::size_t i = 0; i < unit.whole.size(); ++i) {
    const std::int64_t elements = padded_rows(unit.shapes[i]) * unit.shapes[i].cols;
    if (casts) cast = eager_.empty(elements, options_.compute);
    unit.whole[i].storage.resize(elements * size_bytes(options_.compute));
    if (options_.world == 1) eager_.gpu().copies(2 * unit.whole[i].storage.bytes(), OpKind::cast_shard);
  }
}

void Fsdp2::wait_for_gather(Unit& unit, bool in_backward) {
  if (!unit.gathered) return;
  if (!in_backward) gathers_wait_for(copied_out_at_);
  copied_out_ = Storage{};
  eager_.gpu().time().wait(Stream::compute, unit.gather_end);
  make_whole(unit);
  unit.is_whole = true;
  unit.kept.clear();
  Storage output = std::exchange(unit.gathered, {});
  eager_.gpu().copies(2 * output.bytes(), OpKind::retain);
  copied_out_at_ = eager_.gpu().time().end_of(Stream::compute);
  if (in_backward) gathers_wait_for(copied_out_at_);
  if (!in_backward) copied_out_ = std::move(output);
}

void Fsdp2::begin_root() { gathers_wait_for(eager_.gpu().time().end_of(Stream::compute)); }

/// A smaller group of ranks keeps parts of the whole parameters for backward.
void Fsdp2::reshard_after_forward(Unit& unit) {
  for (Tensor& parameter : unit.whole) {
    if (options_.reshard_to > 0)
      unit.kept.push_back(eager_.empty_bytes(parameter.storage.bytes() / options_.reshard_to));
    parameter.storage.resize(0);
  }
  unit.is_whole = false;
}

void Fsdp2::reshard(Unit& unit) {
  for (Tensor& parameter : unit.whole) parameter.storage.resize(0);
  unit.is_whole = false;
}

Wrapper::Tensors Fsdp2::before_forward(std::size_t at, Tensors inputs) {
  Unit& unit = units_[at];
  unit.ended_backward = false;
  if (at == 0) begin_root();
  eager_.gpu().enter(at, false);
  issue_gather(at);
  wait_for_gather(unit, false);
  prefetch_forward(at);
  return through_end_of_backward(eager_, std::move(inputs), [this, at] { after_backward(at); });
}

void Fsdp2::after_forward(std::size_t at, const Tensors& outputs) {
  eager_.gpu().enter(0, false);
  if (at == 0) copied_out_ = Storage{};
  if (options_.reshard && at != 0) reshard_after_forward(units_[at]);
  before_backward_of(outputs, [this, at] { before_backward(at); });
}

void Fsdp2::prefetch_forward(std::size_t at) {
  if (at == 0) return;
  for (std::size_t next = at + 1; next <= at + depth() && next < units_.size(); ++next) issue_gather(next);
}

void Fsdp2::prefetch_backward(std::size_t at) {
  if (at == 0) return issue_gather(units_.size() - 1);
  for (std::size_t back = 1; back <= std::max<std::size_t>(depth(), 1) && back < at; ++back) issue_gather(at - back);
}

void Fsdp2::before_backward(std::size_t at) {
  eager_.gpu().enter(at, true);
  issue_gather(at);
  wait_for_gather(units_[at], true);
  prefetch_backward(at);
}

void Fsdp2::after_backward(std::size_t at) {
  eager_.gpu().enter(at, true);
  units_[at].ended_backward = true;
  reshard(units_[at]);
  synchronises_ ? reduce(at) : keep_gradients(units_[at]);
  eager_.gpu().enter(0, true);
}

/// Gradients that wait for a later micro-batch are kept in the type that they will be reduced in.
void Fsdp2::keep_gradients(Unit& unit) {
  for (Tensor& parameter : unit.whole) {
    if (!parameter.edge.leaf) continue;
    Storage& gradient = parameter.edge.leaf->gradient;
    const std::int64_t bytes = parameter.elements * size_bytes(options_.reduce);
    if (gradient.bytes() == bytes) continue;
    eager_.gpu().copies(gradient.bytes() + bytes, OpKind::cast);
    gradient = eager_.empty_bytes(bytes);
  }
}

/// The oldest inputs are given up, once they are reduced.
void Fsdp2::make_room_for_input() {
  while (static_cast<int>(reductions_.size()) >= options_.reductions) {
    eager_.gpu().time().wait(Stream::compute, reductions_.front().end);
    reductions_.pop_front();
  }
}

/// Gradients side by side, in the type that they are reduced in.
Storage Fsdp2::copy_in(Unit& unit) {
  Gpu& gpu = eager_.gpu();
  const bool early = eager_.traits().early_fsdp2;
  if (early) gpu.time().wait(Stream::reduce, Stream::compute);
  const OnStream on(gpu, early ? Stream::reduce : Stream::compute);
  const std::int64_t whole = unit.trained_elements * options_.world;
  const Storage input = eager_.empty(whole, options_.reduce);
  gpu.copies(whole * (size_bytes(options_.reduce) + size_bytes(options_.compute)), OpKind::cast);
  if (early) gpu.time().wait(Stream::compute, Stream::reduce);
  for (Tensor& parameter : unit.whole)
    if (parameter.edge.leaf) parameter.edge.leaf->gradient = Storage{};
  return input;
}

void Fsdp2::reduce(std::size_t at) {
  Unit& unit = units_[at];
  if (unit.trained_elements == 0) return;
  make_room_for_input();
  const Storage input = copy_in(unit);
  eager_.gpu().time().wait(Stream::reduce, Stream::compute);
  const OnStream on(eager_.gpu(), Stream::reduce);
  const Storage reduced = eager_.empty(unit.trained_elements, options_.reduce);
  start_reduction(at, input, reduced);
  const Storage gradient =
      options_.reduce == options_.weights ? reduced : eager_.empty(unit.trained_elements, options_.weights);
  if (!unit.gradient) unit.gradient = gradient;
  if (options_.replicas > 1) unit.all_reduced = reduced;
}

/// What follows on the shard runs behind the last collective, on its stream.
void Fsdp2::start_reduction(std::size_t at, const Storage& input, const Storage& reduced) {
  Gpu& gpu = eager_.gpu();
  options_.on_issue(Collective::reduce_scatter, at);
  if (options_.world > 1) gpu.collective(Communicator::shard, OpKind::reduce_scatter, input.bytes(), at);
  if (!eager_.traits().early_fsdp2) reductions_.push_back({input, gpu.time().end_of(Stream::reduce)});
  const bool replicated = options_.replicas > 1;
  const OnStream on(gpu, replicated ? Stream::replicate : Stream::reduce);
  if (replicated) {
    options_.on_issue(Collective::all_reduce, at);
    gpu.time().wait(Stream::replicate, Stream::reduce);
    gpu.collective(Communicator::replica, OpKind::all_reduce, reduced.bytes(), at);
  }
  if (options_.reduce != options_.weights) gpu.copies(3 * reduced.bytes(), OpKind::cast);
  if (units_[at].gradient) gpu.copies(3 * reduced.bytes(), OpKind::add);
}

void Fsdp2::end_backward() {
  for (std::size_t at = 0; at < units_.size(); ++at)
    if (!units_[at].ended_backward) after_backward(at);
  for (const Stream stream : {Stream::reduce, Stream::replicate}) eager_.gpu().time().wait(Stream::compute, stream);
  if (!last_) return;
  for (Unit& unit : units_) unit.all_reduced = Storage{};
  reductions_.clear();
}

std::vector<std::int64_t> Fsdp2::updated() const {
  std::vector<std::int64_t> elements;
  for (const Unit& unit : units_)
    for (const ParameterShape& shape : unit.shapes)
      if (shape.trained) elements.push_back(std::min(shape.rows, padded_rows(shape) / options_.world) * shape.cols);
  return elements;
}

void Fsdp2::zero_grad() {
  for (Unit& unit : units_) unit.gradient = Storage{};
}

}  // namespace foreshard::sim::torch
