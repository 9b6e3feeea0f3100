#include "plan/plan.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/exact_sum.hpp"
#include "base/hash.hpp"

namespace foreshard::plan {

std::string_view name_of(Lane lane) {
  constexpr std::string_view names[] = {"compute", "gather", "reduce", "replicate", "copy"};
  return names[static_cast<int>(lane)];
}

std::string_view name_of(Space space) { return space == Space::device ? "device" : "host"; }

std::string_view name_of(MemoryClass kind) {
  constexpr std::string_view names[] = {"parameters",          "gradients",   "optimizer", "gathered",
                                        "unsharded_gradients", "activations", "batch",     "workspace"};
  return names[static_cast<int>(kind)];
}

std::string_view name_of(Segment::Name name) {
  constexpr std::string_view names[] = {"only", "first", "middle", "last", "update", "evaluate"};
  return names[static_cast<int>(name)];
}

int Plan::norm_words() const { return std::isinf(norm_power) ? mesh.shard_degree() : exact_sum_words; }
bool FlatParameter::has_gradient() const { return std::ranges::any_of(pieces, &FlatPiece::updated); }

std::int64_t FlatParameter::whole_bytes(DType shards, bool offloaded) const {
  if (!used) return 0;
  if (moves_packed(offloaded)) return part_bytes(1, gathered);
  return gathered != shards ? packed_at_bytes(1, gathered) : 0;
}

std::vector<FlatRange> FlatParameter::ranges() const {
  std::vector<FlatRange> found;
  for (const FlatRange& range : {trainable, frozen})
    if (range.elements > 0) found.push_back(range);
  return found;
}

std::vector<ShardPart> parts_of_shard(const FlatParameter& flat, int rank) {
  std::vector<ShardPart> parts;
  const std::int64_t index = rank % flat.shard_degree;
  for (const FlatPiece& piece : flat.pieces) {
    const FlatRange& range = piece.trainable ? flat.trainable : flat.frozen;
    const std::int64_t shard = flat.shard_of(range.padded_elements), begin = range.first + index * shard;
    const std::int64_t from = std::max(begin, piece.offset),
                       to = std::min(begin + shard, piece.offset + piece.elements);
    if (from < to) parts.push_back({&piece, from - piece.offset, flat.shard_of(range.first) + from - begin, to - from});
  }
  return parts;
}

std::span<const Op> Plan::ops_of(const Segment& segment) const {
  return std::span(ops).subspan(segment.first_op, segment.op_count);
}

std::span<const Operand> Plan::inputs(const Op& op) const {
  return std::span(operands).subspan(op.first_operand, op.input_count);
}

std::span<const Operand> Plan::outputs(const Op& op) const {
  return std::span(operands).subspan(op.first_operand + op.input_count, op.output_count);
}

std::span<const Wait> Plan::waits_of(const Op& op) const {
  return std::span(waits).subspan(op.first_wait, op.wait_count);
}

const Segment& Plan::segment(Segment::Name name) const {
  const auto found = std::ranges::find(segments, name, &Segment::name);
  FORESHARD_EXPECT(found != segments.end(), std::string("the plan has no segment ") + std::string(name_of(name)));
  return *found;
}

std::vector<const Segment*> Plan::sequence() const {
  std::vector<const Segment*> step;
  for (const Segment& segment : segments) step.insert(step.end(), static_cast<std::size_t>(times(segment)), &segment);
  return step;
}

bool is_collective(OpKind kind) {
  return kind == OpKind::all_gather || kind == OpKind::reduce_scatter || kind == OpKind::all_reduce ||
         kind == OpKind::sum_norm || kind == OpKind::sum_loss || kind == OpKind::gather_norm;
}

std::string name_of(const Plan& plan, const Op& op) {
  const std::string kind(model::name_of(op.kind));
  return op.unit.valid() ? kind + " " + plan.unit_names[op.unit.value] : kind;
}

std::int64_t payload_bytes(const Plan& plan, const Op& op) {
  return op.sizes.rows * size_bytes(plan.inputs(op)[0].dtype);
}

namespace {

void add(Hash& hash, const Op& op) {
  hash.add(op.kind).add(op.lane).add(op.phase).add(op.group).add(op.accumulate).add(op.unit.value);
  const Sizes& s = op.sizes;
  for (const std::int64_t extent : {s.rows, s.cols, s.inner, s.batch, s.seq, s.heads}) hash.add(extent);
  hash.add(op.scalar).add(op.stream).add(op.input_count).add(op.output_count).add(op.wait_count);
}

}  // namespace

std::uint64_t hash_of(const Plan& plan) {
  Hash hash;
  hash.add(plan.dtype).add(plan.micro_batches).add(plan.arena_bytes).add(plan.host_arena_bytes);
  hash.add(plan.mesh.replicas).add(plan.mesh.outer).add(plan.mesh.inner);
  for (const Segment& segment : plan.segments) hash.add(segment.name).add(segment.op_count);
  for (const Op& op : plan.ops) add(hash, op);
  for (const Operand& o : plan.operands)
    hash.add(o.buffer.value).add(o.offset_bytes).add(o.size_bytes).add(o.dtype).add(o.written);
  for (const Wait& wait : plan.waits) hash.add(wait.on).add(wait.index);
  for (const Buffer& buffer : plan.buffers)
    hash.add(buffer.size_bytes).add(buffer.offset_bytes).add(buffer.space).add(buffer.persistent);
  return hash.value();
}

}  // namespace foreshard::plan
