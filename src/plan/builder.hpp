#pragma once
#include <span>
#include <vector>

#include "plan/build.hpp"

namespace foreshard::plan {

/// Appends to a plan: buffers, and ops with their operands and waits.
class Builder {
 public:
  Builder(const model::Graph& graph, std::vector<FlatParameter> units, const Mesh& mesh,
          const ScheduleOptions& options);

  /// What an op needs besides its operands.
  struct OpSpec {
    OpKind kind{};
    Lane lane = Lane::compute;
    Phase phase = Phase::forward;
    UnitId unit;
    Sizes sizes;
    GroupKind group = GroupKind::none;
    bool accumulate = false;
    float scalar = 0;
    std::uint32_t stream = 0;
  };
  OpId op(const OpSpec& spec, std::span<const Operand> inputs, std::span<const Operand> outputs,
          std::span<const Wait> waits = {});

  BufferId buffer(std::int64_t size_bytes, MemoryClass memory, UnitId unit = {}, model::TensorId tensor = {});

  void begin_segment(Segment::Name name);
  void mark(Wait::On point, UnitId unit, OpId op);
  void end_segment();

  /// `elements` of a shard's buffer from element `first` on, as an operand that is read or written; of its type.
  Operand read(BufferId buffer, std::int64_t elements, std::int64_t first = 0) const;
  Operand write(BufferId buffer, std::int64_t elements, std::int64_t first = 0) const;

  /// The same of any type.
  static Operand words(BufferId buffer, std::int64_t elements, DType dtype, bool written, std::int64_t first = 0);

  /// Copies the whole of `from`, a shard, between host and device, on the copy lane; `spec.kind` is fetch
  /// or offload.
  OpId copy_shard(OpSpec spec, BufferId from, BufferId to, std::span<const Wait> waits);

  std::uint32_t unit_count() const { return static_cast<std::uint32_t>(plan.units.size()); }

  Plan plan;
  BufferId tokens, targets, local_loss;
  BufferId shard_norm;  ///< words of this shard's norm; plan.norm itself where shards are summed in place

 private:
  void add_persistent_buffers(const model::Graph& graph, const ScheduleOptions& options);
  BufferId persistent(std::int64_t size_bytes, MemoryClass memory, UnitId unit = {}, bool in_host = false);
  DType type_of(BufferId shard) const {
    return shard.valid() ? plan.shard_type(plan.buffers[shard.value]) : plan.dtype;
  }
};

/// The wait for an op of the same segment.
inline Wait after(OpId op) { return {Wait::On::op, op.value}; }

}  // namespace foreshard::plan
