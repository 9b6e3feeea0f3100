#include "sim/runtimes/zero2.hpp"

#include <algorithm>
#include <utility>

#include "sim/runtimes/unit_hooks.hpp"

namespace foreshard::sim::torch {

using model::OpKind;

Zero2::Zero2(Eager& eager, const UnitShapes& shapes, const WrapOptions& options) : eager_(eager), options_(options) {
  std::int64_t elements = 0;
  for (const auto& unit : shapes)
    for (const ParameterShape& shape : unit) elements += shape.elements();
  const std::int64_t multiple = 2 * options.world;
  part_ = (elements + multiple - 1) / multiple * multiple / options.world;
  flat_ = eager.empty(part_ * options.world, options.compute);
  master_ = eager.empty(part_, options.weights);
  add_parameters(shapes);
}

void Zero2::add_parameters(const UnitShapes& shapes) {
  std::int64_t first = 0;
  for (std::size_t at = 0; at < shapes.size(); ++at) {
    units_.emplace_back();
    for (const ParameterShape& shape : shapes[at]) {
      auto leaf = std::make_shared<Leaf>();
      leaf->accumulated = [this, index = parameters_.size()] { gradient_came(index); };
      const std::int64_t elements = shape.elements(), owned = std::clamp<std::int64_t>(part_ - first, 0, elements);
      parameters_.push_back({{flat_, elements, options_.compute, {nullptr, 0, std::move(leaf)}}, at, owned});
      units_.back().push_back(parameters_.back().tensor);
      if (owned > 0) in_owned_ += elements;
      first += elements;
    }
  }
}

Wrapper::Tensors Zero2::before_forward(std::size_t at, Tensors inputs) {
  eager_.gpu().enter(at, false);
  return through_end_of_backward(eager_, std::move(inputs), [this] { eager_.gpu().enter(0, true); });
}

void Zero2::after_forward(std::size_t at, const Tensors& outputs) {
  eager_.gpu().enter(0, false);
  before_backward_of(outputs, [this, at] { eager_.gpu().enter(at, true); });
}

void Zero2::make_buffers() {
  if (!buffers_.empty()) return;
  buffer_ = 0;
  for (int i = options_.zero.overlaps ? 2 : 1; i > 0; --i)
    buffers_.push_back(eager_.empty(options_.zero.reduce_bucket, options_.compute));
}

void Zero2::gradient_came(std::size_t index) {
  make_buffers();
  if (reduces_in_hooks() && reduces_now()) add_to_bucket(index);
}

/// A gradient that is larger than the buffer is reduced where it is.
void Zero2::add_to_bucket(std::size_t index) {
  const Parameter& parameter = parameters_[index];
  const std::int64_t elements = parameter.tensor.elements;
  if (bucket_elements_ + elements > options_.zero.reduce_bucket) {
    reduce_bucket();
    if (options_.zero.overlaps) buffer_ = 1 - buffer_;
  }
  bucket_.push_back(index), bucket_elements_ += elements;
  if (elements > options_.zero.reduce_bucket) return;
  eager_.gpu().copies(2 * parameter.tensor.bytes(), OpKind::cast);
  parameter.tensor.edge.leaf->gradient = buffers_[buffer_];
}

/// Each waits for what the other has been given, so one reduction at most is under way.
void Zero2::reduce_bucket() {
  if (bucket_.empty()) return;
  Gpu& gpu = eager_.gpu();
  if (options_.zero.overlaps) {
    gpu.time().wait(Stream::reduce, Stream::compute);
    gpu.time().wait(Stream::compute, Stream::reduce);
  }
  const OnStream on(gpu, options_.zero.overlaps ? Stream::reduce : Stream::compute);
  start_reduction(parameters_[bucket_.back()].tensor.edge.leaf->gradient, bucket_elements_);
  hand_out();
  bucket_.clear(), bucket_elements_ = 0;
}

/// Divided, then reduced in the type of communication; what comes of it is copied back.
void Zero2::start_reduction(const Storage& input, std::int64_t elements) {
  Gpu& gpu = eager_.gpu();
  input.record(gpu.current());
  const std::int64_t bytes = elements * size_bytes(options_.compute), sent = elements * size_bytes(options_.reduce);
  const bool copied = options_.zero.reduce_scatter, cast = options_.reduce != options_.compute;
  gpu.copies(2 * bytes, OpKind::cast);
  const Storage flattened = copied ? eager_.empty_bytes(bytes) : input;
  if (copied) gpu.copies(2 * bytes, OpKind::cast);
  const Storage narrowed = cast ? eager_.empty_bytes(sent) : flattened;
  if (cast) gpu.copies(bytes + sent, OpKind::cast);
  all_reduce(sent);
  if (cast) gpu.copies(bytes + sent, OpKind::cast);
}

/// For each owner a reduction of its part, or one all-reduce. A reduction moves half of what an all-reduce does.
void Zero2::all_reduce(std::int64_t bytes) {
  if (options_.world == 1) return;
  const std::size_t unit = parameters_[bucket_.back()].unit;
  const bool whole = options_.zero.multi_rank_reduction || !options_.zero.reduce_scatter;
  options_.on_issue(whole ? Collective::all_reduce : Collective::reduce_scatter, unit);
  eager_.gpu().collective(Communicator::shard, whole ? OpKind::all_reduce : OpKind::reduce_scatter, bytes, unit);
}

void Zero2::hand_out() {
  for (const std::size_t index : bucket_) {
    Parameter& parameter = parameters_[index];
    if (parameter.owned > 0)
      keep_owned(parameter);
    else if (options_.zero.stage == 2)
      parameter.tensor.edge.leaf->gradient = Storage{};
  }
}

/// The whole gradient of a parameter of which the rank owns a part.
void Zero2::keep_owned(Parameter& parameter) {
  if (!owned_) owned_ = eager_.empty(in_owned_, options_.compute);
  const std::int64_t element = size_bytes(options_.compute);
  if (options_.zero.reduce_scatter) eager_.gpu().copies(2 * parameter.owned * element, OpKind::cast);
  eager_.gpu().copies(2 * parameter.tensor.bytes(), OpKind::cast);
  parameter.tensor.edge.leaf->gradient = owned_;
}

void Zero2::end_backward() {
  if (!reduces_now()) return;
  Gpu& gpu = eager_.gpu();
  if (!reduces_in_hooks())
    for (std::size_t index = 0; index < parameters_.size(); ++index) add_to_bucket(index);
  reduce_bucket();
  if (options_.zero.overlaps) {
    gpu.block(gpu.time().end_of_all());
    gpu.time().wait(Stream::compute, Stream::reduce);
  }
  if (averaged_) gpu.copies(3 * owned_.bytes(), OpKind::add);
  if (!averaged_) averaged_ = owned_;
  owned_ = Storage{};
  buffers_.clear();
  for (const Parameter& parameter : parameters_) parameter.tensor.edge.leaf->gradient = Storage{};
}

/// The norm is wanted by the host.
void Zero2::before_update() {
  Gpu& gpu = eager_.gpu();
  gpu.enter(0, true);
  const std::int64_t bytes = part_ * size_bytes(options_.compute);
  gpu.copies(bytes, OpKind::cast);
  gpu.block(gpu.time().end_of(Stream::compute));
  const Storage flat = eager_.empty_bytes(bytes);
  gpu.copies(2 * bytes, OpKind::cast);
  update_gradient_ = options_.compute == options_.weights ? flat : eager_.empty(part_, options_.weights);
  if (options_.compute != options_.weights) gpu.copies(bytes + update_gradient_.bytes(), OpKind::cast);
  averaged_ = Storage{};
}

void Zero2::after_update() {
  Gpu& gpu = eager_.gpu();
  update_gradient_ = Storage{};
  gpu.copies(part_ * (size_bytes(options_.weights) + size_bytes(options_.compute)), OpKind::cast);
  if (options_.world == 1) return;
  options_.on_issue(Collective::all_gather, 0);
  gpu.collective(Communicator::shard, OpKind::all_gather, flat_.bytes(), 0);
}

}  // namespace foreshard::sim::torch
