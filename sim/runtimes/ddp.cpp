#include "sim/runtimes/ddp.hpp"

#include <utility>

#include "sim/runtimes/unit_hooks.hpp"

namespace foreshard::sim::torch {
namespace {

using model::OpKind;

constexpr std::int64_t first_bucket_bytes = 1 << 20;

}  // namespace

Ddp::Ddp(Eager& eager, const UnitShapes& shapes, const WrapOptions& options) : eager_(eager), options_(options) {
  units_.resize(shapes.size());
  for (std::size_t at = 0; at < shapes.size(); ++at)
    for (const ParameterShape& shape : shapes[at]) add_parameter(at, shape);
  std::vector<std::size_t> trained;
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (parameters_[p].is_trained()) trained.push_back(p);
  make_buckets({trained});
}

void Ddp::add_parameter(std::size_t at, const ParameterShape& shape) {
  const std::size_t index = parameters_.size();
  const auto leaf = shape.trained ? std::make_shared<Leaf>() : nullptr;
  if (leaf) leaf->accumulated = [this, index] { gradient_came(index); }, ++units_[at].trained;
  const Tensor tensor{
      eager_.empty(shape.elements(), options_.weights), shape.elements(), options_.weights, {nullptr, 0, leaf}};
  parameters_.push_back({tensor, at});
  units_[at].whole.push_back(tensor);
  units_[at].used = units_[at].whole;
}

void Ddp::make_buckets(const std::vector<std::vector<std::size_t>>& all) {
  buckets_.clear();
  for (const std::vector<std::size_t>& parameters : all) {
    std::int64_t bytes = 0;
    for (const std::size_t p : parameters)
      bytes += parameters_[p].tensor.bytes(), parameters_[p].bucket = buckets_.size();
    buckets_.push_back({parameters, eager_.empty_bytes(bytes)});
  }
}

std::vector<std::vector<std::size_t>> Ddp::buckets_in_order_of_arrival() const {
  std::vector<std::vector<std::size_t>> all(1);
  std::int64_t limit = first_bucket_bytes, bytes = 0;
  for (const std::size_t p : arrived_) {
    if (bytes >= limit) all.emplace_back(), bytes = 0, limit = options_.bucket_bytes;
    all.back().push_back(p);
    bytes += parameters_[p].tensor.bytes();
  }
  return all;
}

void Ddp::begin_root() {
  next_bucket_ = 0;
  if (!is_rebuilt_ && !arrived_.empty()) {
    make_buckets(buckets_in_order_of_arrival());
    is_rebuilt_ = true;
  }
  for (Bucket& bucket : buckets_) bucket.awaited = bucket.parameters.size();
}

void Ddp::cast(Unit& unit) {
  if (options_.compute == options_.weights) return;
  for (std::size_t i = 0; i < unit.whole.size(); ++i) unit.used[i] = eager_.to(unit.whole[i], options_.compute);
}

Wrapper::Tensors Ddp::before_forward(std::size_t at, Tensors inputs) {
  if (at == 0) begin_root();
  Unit& unit = units_[at];
  unit.awaited = unit.trained;
  eager_.gpu().enter(at, false);
  cast(unit);
  return inputs;
}

void Ddp::after_forward(std::size_t at, const Tensors& outputs) {
  eager_.gpu().enter(0, false);
  before_backward_of(outputs, [this, at] { before_backward(at); });
}

void Ddp::before_backward(std::size_t at) { eager_.gpu().enter(at, true); }

void Ddp::gradient_came(std::size_t index) {
  const Parameter& parameter = parameters_[index];
  Unit& unit = units_[parameter.unit];
  if (synchronises_) {
    if (!is_rebuilt_) arrived_.push_back(index);
    copy_to_bucket(parameter);
    --buckets_[parameter.bucket].awaited;
    reduce_full_buckets();
  }
  if (--unit.awaited > 0) return;
  unit.used = unit.whole;
  eager_.gpu().enter(0, true);
}

/// Divided by the number of ranks on the way.
void Ddp::copy_to_bucket(const Parameter& parameter) {
  eager_.gpu().copies(2 * parameter.tensor.bytes(), OpKind::cast);
  if (options_.gradients_are_views) parameter.tensor.edge.leaf->gradient = buckets_[parameter.bucket].contents;
}

void Ddp::reduce_full_buckets() {
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].awaited == 0) reduce(buckets_[next_bucket_++]);
}

void Ddp::reduce(Bucket& bucket) {
  Gpu& gpu = eager_.gpu();
  const std::size_t unit = parameters_[bucket.parameters.back()].unit;
  options_.on_issue(Collective::all_reduce, unit);
  gpu.time().wait(Stream::replicate, Stream::compute);
  const OnStream on(gpu, Stream::replicate);
  if (options_.replicas > 1) gpu.collective(Communicator::replica, OpKind::all_reduce, bucket.contents.bytes(), unit);
  bucket.reduced_at = gpu.time().end_of(Stream::replicate);
}

void Ddp::end_backward() {
  if (!synchronises_) return;
  for (const Bucket& bucket : buckets_) {
    eager_.gpu().time().wait(Stream::compute, bucket.reduced_at);
    if (!options_.gradients_are_views) eager_.gpu().copies(2 * bucket.contents.bytes(), OpKind::cast);
  }
}

std::vector<std::int64_t> Ddp::updated() const {
  std::vector<std::int64_t> elements;
  for (const Parameter& parameter : parameters_)
    if (parameter.is_trained()) elements.push_back(parameter.tensor.elements);
  return elements;
}

void Ddp::zero_grad() {
  for (const Parameter& parameter : parameters_)
    if (parameter.is_trained()) parameter.tensor.edge.leaf->gradient = Storage{};
}

}  // namespace foreshard::sim::torch
