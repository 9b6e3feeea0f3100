#include "plan/builder.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/exact_sum.hpp"

namespace foreshard::plan {
namespace {

constexpr std::int64_t buffer_alignment_bytes = 64;

std::int64_t aligned(std::int64_t size_bytes) {
  return (size_bytes + buffer_alignment_bytes - 1) / buffer_alignment_bytes * buffer_alignment_bytes;
}

/// Embedding operators touch only the rows of their tokens, retain and cast_shard only their part; all others their
/// whole operands.
double touched_bytes(const Op& op, const Operand& operand) {
  const bool table = (op.kind == OpKind::embedding && !operand.written) || op.kind == OpKind::embedding_backward;
  const auto whole = static_cast<double>(operand.size_bytes);
  if (op.kind == OpKind::retain || op.kind == OpKind::cast_shard)
    return static_cast<double>(op.sizes.rows * size_bytes(operand.dtype));
  return table ? std::min(whole, static_cast<double>(op.sizes.rows * op.sizes.cols * size_bytes(operand.dtype)))
               : whole;
}

/// Models of images, and profiles, do not read tokens.
bool is_read(const model::Graph& graph, model::TensorId tensor) {
  return std::ranges::any_of(graph.operators, [&](const model::Operator& op) {
    return std::ranges::find(op.inputs, tensor) != op.inputs.end();
  });
}

bool sums_everywhere(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::sum_norm || kind == OpKind::sum_loss;
}

bool is_gather_or_scatter(OpKind kind) {
  return kind == OpKind::all_gather || kind == OpKind::reduce_scatter || kind == OpKind::gather_norm;
}

/// Bytes that the first of `members` receives. Where all get the sum, it adds up a part of ⌊elements / members⌋, which
/// comes from each other member, and then receives the sums of the rest, which are in the type of the result.
double received_bytes(OpKind kind, int members, std::int64_t elements, DType from, DType to) {
  const std::int64_t part = elements / members;
  if (sums_everywhere(kind))
    return static_cast<double>(part * (members - 1) * size_bytes(from) + (elements - part) * size_bytes(to));
  if (!is_gather_or_scatter(kind)) return 0;
  return static_cast<double>(elements * size_bytes(from)) * (members - 1) / members;
}

}  // namespace

Builder::Builder(const model::Graph& graph, std::vector<FlatParameter> units, const Mesh& mesh,
                 const ScheduleOptions& options) {
  plan.units = std::move(units);
  for (const model::Unit& unit : graph.units) plan.unit_names.push_back(unit.name);
  plan.mesh = mesh;
  plan.dtype = graph.dtype;
  plan.master = options.master.value_or(graph.dtype);
  plan.micro_batches = options.micro_batches;
  plan.micro_batch_tokens = graph[graph.tokens].elements;
  plan.parameters = graph.parameter_count();
  add_persistent_buffers(graph, options);
}

void Builder::add_persistent_buffers(const model::Graph& graph, const ScheduleOptions& options) {
  const Offload& offload = options.offload;
  const int moments = model::moment_count(options.update);
  plan.workspace = persistent(options.workspace_bytes, MemoryClass::workspace);  // first, so that it is aligned best
  for (std::uint32_t u = 0; u < unit_count(); ++u) {
    FlatParameter& flat = plan.units[u];
    const std::int64_t bytes = flat.part_bytes(flat.shard_degree, plan.master);
    const std::int64_t trainable_bytes = flat.shard_of(flat.trainable.padded_elements) * size_bytes(plan.dtype);
    flat.parameter_shard = persistent(bytes, MemoryClass::parameters, {u}, offload.parameters);
    flat.gradient_shard = persistent(trainable_bytes, MemoryClass::gradients, {u}, offload.gradients);
    if (moments > 0) flat.first_moment = persistent(trainable_bytes, MemoryClass::optimizer, {u}, offload.optimizer);
    if (moments > 1) flat.second_moment = persistent(trainable_bytes, MemoryClass::optimizer, {u}, offload.optimizer);
  }
  if (is_read(graph, graph.tokens))
    tokens = persistent(graph[graph.tokens].elements * size_bytes(DType::i32), MemoryClass::batch);
  targets = persistent(graph[graph.targets].elements * size_bytes(DType::i32), MemoryClass::batch);
  local_loss = persistent(2 * size_bytes(DType::f64), MemoryClass::batch);
  plan.loss = persistent(2 * size_bytes(DType::f64), MemoryClass::batch);
  plan.norm_power = options.norm_power;
  plan.norm = persistent(plan.norm_words() * size_bytes(DType::i64), MemoryClass::batch);
  const bool gathers = std::isinf(plan.norm_power) && plan.mesh.shard_degree() > 1;
  shard_norm = gathers ? persistent(size_bytes(DType::i64), MemoryClass::batch) : plan.norm;
}

BufferId Builder::buffer(std::int64_t size_bytes, MemoryClass memory, UnitId unit, model::TensorId tensor) {
  plan.buffers.push_back({.size_bytes = aligned(size_bytes), .memory = memory, .tensor = tensor, .unit = unit});
  return {static_cast<std::uint32_t>(plan.buffers.size() - 1)};
}

BufferId Builder::persistent(std::int64_t size_bytes, MemoryClass memory, UnitId unit, bool in_host) {
  if (size_bytes == 0) return {};
  const BufferId id = buffer(size_bytes, memory, unit);
  plan.buffers.back().persistent = true;
  if (in_host) plan.buffers.back().space = Space::host;
  return id;
}

Operand Builder::read(BufferId buffer, std::int64_t elements, std::int64_t first) const {
  return words(buffer, elements, type_of(buffer), false, first);
}

Operand Builder::write(BufferId buffer, std::int64_t elements, std::int64_t first) const {
  return words(buffer, elements, type_of(buffer), true, first);
}

Operand Builder::words(BufferId buffer, std::int64_t elements, DType dtype, bool written, std::int64_t first) {
  return {buffer, first * size_bytes(dtype), elements * size_bytes(dtype), dtype, written};
}

OpId Builder::op(const OpSpec& spec, std::span<const Operand> inputs, std::span<const Operand> outputs,
                 std::span<const Wait> waits) {
  Op op{.kind = spec.kind,
        .lane = spec.lane,
        .phase = spec.phase,
        .group = spec.group,
        .accumulate = spec.accumulate,
        .unit = spec.unit};
  op.sizes = spec.sizes;
  op.scalar = spec.scalar;
  op.stream = spec.stream;
  op.first_operand = static_cast<std::uint32_t>(plan.operands.size());
  op.input_count = static_cast<std::uint32_t>(inputs.size());
  op.output_count = static_cast<std::uint32_t>(outputs.size());
  op.first_wait = static_cast<std::uint32_t>(plan.waits.size());
  op.wait_count = static_cast<std::uint32_t>(waits.size());
  op.cost.flops = model::flops(op.kind, op.sizes);
  for (const Operand& input : inputs) op.cost.read_bytes += touched_bytes(op, input);
  for (const Operand& output : outputs) op.cost.written_bytes += touched_bytes(op, output);
  if (op.group != GroupKind::none)
    op.wire_bytes =
        received_bytes(op.kind, plan.mesh.members(op.group), op.sizes.rows, inputs[0].dtype, outputs[0].dtype);
  plan.operands.insert(plan.operands.end(), inputs.begin(), inputs.end());
  plan.operands.insert(plan.operands.end(), outputs.begin(), outputs.end());
  plan.waits.insert(plan.waits.end(), waits.begin(), waits.end());
  plan.ops.push_back(op);
  return {static_cast<std::uint32_t>(plan.ops.size() - 1)};
}

OpId Builder::copy_shard(OpSpec spec, BufferId from, BufferId to, std::span<const Wait> waits) {
  const DType type = type_of(from);
  const std::int64_t elements = plan.buffers[from.value].size_bytes / size_bytes(type);
  spec.lane = Lane::copy;
  spec.sizes = {.rows = elements};
  return op(spec, std::array{words(from, elements, type, false)}, std::array{words(to, elements, type, true)}, waits);
}

void Builder::begin_segment(Segment::Name name) {
  Segment segment{.name = name, .first_op = static_cast<std::uint32_t>(plan.ops.size())};
  for (auto& points : segment.points) points.resize(unit_count());
  plan.segments.push_back(std::move(segment));
}

void Builder::mark(Wait::On point, UnitId unit, OpId op) {
  plan.segments.back().points[static_cast<std::size_t>(point) - 1][unit.value] = op;
}

void Builder::end_segment() {
  Segment& segment = plan.segments.back();
  segment.op_count = static_cast<std::uint32_t>(plan.ops.size()) - segment.first_op;
}

}  // namespace foreshard::plan
