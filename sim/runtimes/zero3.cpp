#include "sim/runtimes/zero3.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/runtimes/unit_hooks.hpp"

namespace foreshard::sim::torch {
namespace {

using model::OpKind;

constexpr std::size_t most_under_way = 2;

}  // namespace

Zero3::Zero3(Eager& eager, const UnitShapes& shapes, const WrapOptions& options) : eager_(eager), options_(options) {
  units_.resize(shapes.size());
  for (std::size_t at = 0; at < shapes.size(); ++at)
    for (const ParameterShape& shape : shapes[at]) add_parameter(at, shape);
  make_sub_groups();
  shards_ = eager.empty(part_, options.compute), master_ = eager.empty(part_, options.weights);
  gradients_ = eager.empty(part_, options.compute);
  buffer_ = eager.empty(options.zero.reduce_bucket, options.compute);
}

void Zero3::add_parameter(std::size_t at, const ParameterShape& shape) {
  Unit& unit = units_[at];
  const std::int64_t elements = shape.elements();
  auto leaf = std::make_shared<Leaf>();
  leaf->accumulated = [this, index = parameters_.size()] { gradient_came(index); };
  const Tensor tensor{eager_.empty(0, options_.compute), elements, options_.compute, {nullptr, 0, std::move(leaf)}};
  if (unit.modules.empty() || shape.cols > 1) unit.modules.emplace_back();
  unit.modules.back().push_back(parameters_.size());
  unit.whole.push_back(tensor);
  unit.elements += elements;
  parameters_.push_back({.tensor = tensor,
                         .unit = at,
                         .part = (elements + options_.world - 1) / options_.world,
                         .persists = elements <= options_.zero.persistence_threshold,
                         .gather = nullptr});
}

void Zero3::make_sub_groups() {
  sub_groups_ = {0};
  for (const Parameter& parameter : parameters_) {
    if (sub_groups_.back() >= options_.zero.sub_group) sub_groups_.push_back(0);
    sub_groups_.back() += parameter.part;
    part_ += parameter.part;
  }
}

/// Blocks in forward, then the same in backward; the root is not among them.
std::size_t Zero3::unit_of(std::size_t visit) const {
  const std::size_t blocks = units_.size() - 1;
  return visit <= blocks ? visit : 2 * blocks + 1 - visit;
}

/// The first micro-batch has no order to prefetch by.
void Zero3::line_up_uses() {
  queue_.clear();
  for (Parameter& parameter : parameters_) parameter.fetched_for = 0;
  if (micro_batches_++ == 0) return;
  for (std::size_t visit = 1; visit <= 2 * (units_.size() - 1); ++visit)
    for (const auto& module : units_[unit_of(visit)].modules)
      for (const std::size_t parameter : module) queue_.push_back({parameter, visit});
}

/// Beyond so many events the host waits for the oldest.
void Zero3::limit(std::deque<Nanoseconds>& events) {
  if (events.size() <= most_under_way) return;
  eager_.gpu().block(events.front());
  events.pop_front();
}

/// One parameter's output is the parameter; of several each is copied out when they are there. One rank has them all.
void Zero3::gather(const std::vector<std::size_t>& asked) {
  auto gather = std::make_shared<Gather>();
  std::int64_t elements = 0;
  for (const std::size_t index : asked) {
    Parameter& parameter = parameters_[index];
    if (parameter.is_asked_for) continue;
    parameter.is_asked_for = true, parameter.gather = gather;
    gather->parameters.push_back(index);
    elements += parameter.part * options_.world;
    live_ += parameter.tensor.elements;
  }
  if (gather->parameters.empty() || options_.world == 1) return;
  Gpu& gpu = eager_.gpu();
  const OnStream on(gpu, Stream::unshard);
  const std::size_t unit = parameters_[gather->parameters.front()].unit;
  const std::int64_t bytes = elements * size_bytes(options_.compute);
  if (gather->parameters.size() == 1)
    parameters_[gather->parameters.front()].tensor.storage.resize(bytes);
  else
    gather->output = eager_.empty_bytes(bytes);
  options_.on_issue(Collective::all_gather, unit);
  gpu.collective(Communicator::shard, OpKind::all_gather, bytes, unit);
}

void Zero3::wait_for(Parameter& parameter) {
  const std::shared_ptr<Gather> gather = std::exchange(parameter.gather, nullptr);
  if (!gather) return;
  Gpu& gpu = eager_.gpu();
  const OnStream on(gpu, Stream::unshard);
  limit(gathered_);
  if (!std::exchange(gather->done, true) && gather->output) {
    for (const std::size_t index : gather->parameters)
      parameters_[index].tensor.storage.resize(parameters_[index].tensor.bytes());
    gpu.copies(2 * gather->output.bytes(), OpKind::cast_shard);
    gather->output = Storage{};
  }
  gathered_.push_back(gpu.time().end_of(Stream::unshard));
}

void Zero3::fetch(std::size_t at) {
  Unit& unit = units_[at];
  for (const auto& module : unit.modules) {
    gather(module);
    for (const std::size_t index : module) wait_for(parameters_[index]);
  }
  eager_.gpu().time().wait(Stream::compute, Stream::unshard);
}

/// So many elements for each of the unit's modules.
void Zero3::prefetch(std::size_t visit) {
  while (!queue_.empty() && queue_.front().visit <= visit) queue_.pop_front();
  for (std::size_t module = 0; module < units_[unit_of(visit)].modules.size(); ++module) {
    const std::int64_t most = std::min(options_.zero.max_live - live_, options_.zero.prefetch_bucket);
    std::vector<std::size_t> asked;
    for (std::int64_t elements = 0; !queue_.empty() && elements < most; queue_.pop_front()) {
      Parameter& parameter = parameters_[queue_.front().parameter];
      parameter.fetched_for = queue_.front().visit;
      if (parameter.is_asked_for) continue;
      asked.push_back(queue_.front().parameter);
      elements += parameter.tensor.elements;
    }
    gather(asked);
  }
}

void Zero3::visit(std::size_t at, std::size_t visit) {
  fetch(at);
  if (options_.zero.prefetch_bucket > 0) prefetch(visit);
}

bool Zero3::is_used_soon(std::size_t at, std::size_t visit) const {
  std::int64_t between = 0;
  for (++visit; visit <= 2 * (units_.size() - 1) && between < options_.zero.max_reuse_distance; ++visit) {
    if (unit_of(visit) == at) return true;
    between += units_[unit_of(visit)].elements;
  }
  return false;
}

void Zero3::free(Parameter& parameter) {
  if (parameter.persists || !parameter.is_asked_for) return;
  wait_for(parameter);
  parameter.is_asked_for = false;
  live_ -= parameter.tensor.elements;
  parameter.tensor.storage.record(Stream::compute);
  parameter.tensor.storage.resize(0);
}

void Zero3::release(std::size_t at, std::size_t visit) {
  if (is_used_soon(at, visit) && micro_batches_ > 1) return;
  for (const auto& module : units_[at].modules)
    for (const std::size_t index : module)
      if (parameters_[index].fetched_for <= visit) free(parameters_[index]);
}

Wrapper::Tensors Zero3::before_forward(std::size_t at, Tensors inputs) {
  units_[at].in_backward = false;
  eager_.gpu().enter(at, false);
  if (at == 0)
    line_up_uses(), fetch(0);
  else
    visit(at, at);
  return through_end_of_backward(eager_, std::move(inputs), [this, at] { after_backward(at); });
}

void Zero3::after_forward(std::size_t at, const Tensors& outputs) {
  if (at != 0) release(at, at);
  eager_.gpu().enter(0, false);
  before_backward_of(outputs, [this, at] { before_backward(at); });
}

void Zero3::before_backward(std::size_t at) {
  eager_.gpu().enter(at, true);
  if (at == 0 || std::exchange(units_[at].in_backward, true)) return;
  visit(at, 2 * units_.size() - 1 - at);
}

void Zero3::after_backward(std::size_t at) {
  eager_.gpu().enter(at, true);
  if (at != 0) release(at, 2 * units_.size() - 1 - at);
  eager_.gpu().enter(0, true);
}

void Zero3::gradient_came(std::size_t index) {
  Gpu& gpu = eager_.gpu();
  const Tensor& tensor = parameters_[index].tensor;
  if (bucket_elements_ + tensor.elements > options_.zero.reduce_bucket) reduce_bucket();
  gpu.time().wait(reduction_stream(), Stream::compute);
  bucket_.push_back(index), bucket_elements_ += tensor.elements;
  if (bucket_elements_ > options_.zero.reduce_bucket) return;  // one that is larger than the bucket
  const OnStream on(gpu, reduction_stream());
  gpu.copies(2 * tensor.bytes(), OpKind::cast);
  tensor.edge.leaf->gradient.record(reduction_stream());
  tensor.edge.leaf->gradient = buffer_;
}

void Zero3::reduce_bucket() {
  if (bucket_.empty()) return;
  Gpu& gpu = eager_.gpu();
  limit(reduced_);
  const OnStream on(gpu, reduction_stream());
  std::int64_t parts = 0;
  for (const std::size_t index : bucket_) parts += parameters_[index].part;
  scatter(bucket_elements_, parts);
  gpu.copies((gradients_are_new_ ? 2 : 3) * parts * size_bytes(options_.compute), OpKind::add);
  for (const std::size_t index : bucket_) {
    Storage& gradient = parameters_[index].tensor.edge.leaf->gradient;
    gradient.record(reduction_stream());
    gradient = Storage{};
  }
  bucket_.clear(), bucket_elements_ = 0;
  reduced_.push_back(gpu.time().end_of(reduction_stream()));
}

/// Put in order of ranks unless one parameter is in order by itself, divided, reduced; or all-reduced where it lies.
void Zero3::scatter(std::int64_t elements, std::int64_t parts) {
  Gpu& gpu = eager_.gpu();
  const std::size_t unit = parameters_[bucket_.back()].unit;
  const bool scatters = options_.zero.reduce_scatter || elements > options_.zero.reduce_bucket;
  const std::int64_t padded = scatters ? parts * options_.world : elements;
  const std::int64_t bytes = padded * size_bytes(options_.compute), sent = padded * size_bytes(options_.reduce);
  const bool casts = options_.reduce != options_.compute,
             copied = scatters && (bucket_.size() > 1 || padded != elements);
  const Storage cast = casts ? eager_.empty_bytes(sent) : Storage{};
  if (casts) gpu.copies(bytes + sent, OpKind::cast);
  const Storage ordered = copied ? eager_.empty_bytes(sent) : Storage{};
  if (copied) gpu.copies(2 * sent, OpKind::cast);
  gpu.copies(2 * sent, OpKind::cast);
  if (options_.world == 1) return;
  options_.on_issue(scatters ? Collective::reduce_scatter : Collective::all_reduce, unit);
  gpu.collective(Communicator::shard, scatters ? OpKind::reduce_scatter : OpKind::all_reduce, sent, unit);
}

void Zero3::end_backward() {
  Gpu& gpu = eager_.gpu();
  reduce_bucket();
  for (Parameter& parameter : parameters_) free(parameter);
  gpu.block(gpu.time().end_of(reduction_stream()));
  gpu.time().wait(Stream::compute, reduction_stream());
  gradients_are_new_ = false;
}

/// The norm is wanted by the host. Sub-groups are updated one by one, so that one's f32 gradient is there at a time.
void Zero3::before_update() {
  Gpu& gpu = eager_.gpu();
  gpu.enter(0, true);
  const std::int64_t bytes = part_ * size_bytes(options_.compute), most = *std::ranges::max_element(sub_groups_);
  gpu.copies(bytes, OpKind::cast);
  gpu.block(gpu.time().end_of(Stream::compute));
  const Storage flat = eager_.empty(most, options_.compute);
  gpu.copies(2 * bytes, OpKind::cast);
  update_gradient_ = options_.compute == options_.weights ? flat : eager_.empty(most, options_.weights);
  if (options_.compute != options_.weights)
    gpu.copies(part_ * (size_bytes(options_.compute) + size_bytes(options_.weights)), OpKind::cast);
}

void Zero3::after_update() {
  Gpu& gpu = eager_.gpu();
  update_gradient_ = Storage{};
  gpu.copies(part_ * (size_bytes(options_.weights) + size_bytes(options_.compute)), OpKind::cast);
  gradients_are_new_ = true;
  gpu.time().wait(Stream::unshard, Stream::compute);
  std::vector<std::size_t> persistent;
  for (std::size_t index = 0; index < parameters_.size(); ++index)
    if (Parameter& parameter = parameters_[index]; parameter.persists && parameter.is_asked_for) {
      parameter.is_asked_for = false, live_ -= parameter.tensor.elements;
      persistent.push_back(index);
    }
  gather(persistent);
  for (const std::size_t index : persistent) wait_for(parameters_[index]);
  gpu.time().wait(Stream::compute, Stream::unshard);
}

}  // namespace foreshard::sim::torch
