#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/mesh.hpp"
#include "plan/op.hpp"

namespace foreshard::plan {

/// Where a parameter lies in its unit's flat parameter, in elements.
struct FlatPiece {
  model::ParameterId parameter;
  std::int64_t offset = 0, elements = 0;
  bool trainable = true;
  bool idle = false;  ///< trainable, but without a gradient in this plan
  bool updated() const { return trainable && !idle; }
};

/// Consecutive pieces that are sharded for themselves, padded with zeros so that all shards are equal multiples of 64
/// bytes. A rank's shard of the unit holds its shard of each range, in the same order.
struct FlatRange {
  std::int64_t first = 0;     ///< element of the flat parameter
  std::int64_t elements = 0;  ///< without padding
  std::int64_t padded_elements = 0;
};

/// A unit's parameters side by side: first those that are trained, to which gradient and moments are confined, then the
/// frozen ones. Each of the two is gathered by a collective of its own; only the first is reduced. Packed parameters
/// are apart: words behind the elements of whatever buffer holds a part of the unit, gathered by a third collective.
struct FlatParameter {
  std::vector<FlatPiece> pieces;     ///< in order of offset
  std::int64_t elements = 0;         ///< without padding
  std::int64_t padded_elements = 0;  ///< shard_elements × shard_degree
  std::int64_t shard_elements = 0;
  int shard_degree = 1;  ///< the mesh's, or 1 for a unit that every rank holds whole
  bool used = true;      ///< some operator reads it
  FlatRange trainable, frozen;
  FlatRange packed;                      ///< in words of 32 bits
  std::vector<FlatPiece> packed_pieces;  ///< in words from the first packed one
  DType gathered = DType::f32;           ///< type of the whole parameters and of what is computed with them
  DType reduced = DType::f32;            ///< type of the whole gradient; shards have the plan's types
  BufferId parameter_shard;
  BufferId gradient_shard, first_moment, second_moment;  ///< of the trainable range; moments: as many as the optimizer
                                                         ///< keeps

  /// What a rank holds of a range, which is where its part begins in the shard too: the range's `first` likewise.
  std::int64_t shard_of(std::int64_t elements_of_whole) const { return elements_of_whole / shard_degree; }
  /// Of a buffer that holds one of `parts` equal parts of the unit, elements in `type`: where its packed words begin,
  /// and its size.
  std::int64_t packed_at_bytes(int parts, DType type) const { return padded_elements / parts * size_bytes(type); }
  std::int64_t part_bytes(int parts, DType type) const {
    return packed_at_bytes(parts, type) + packed.padded_elements / parts * model::packed_word_bytes;
  }
  /// Whether packed words are gathered or fetched before use; if not, they are read in the shard, even where what else
  /// the unit has is cast.
  bool moves_packed(bool offloaded) const { return offloaded || shard_degree > 1; }
  /// Size of what a unit is gathered, cast or fetched into; 0: it is used where it lies. `shards` is their type.
  std::int64_t whole_bytes(DType shards, bool offloaded) const;
  /// The ranges that are not empty, packed words apart.
  std::vector<FlatRange> ranges() const;
  /// Some of it has a gradient in this plan.
  bool has_gradient() const;
};

/// Where some elements of a parameter lie in a rank's shard.
struct ShardPart {
  const FlatPiece* piece = nullptr;
  std::int64_t first = 0;  ///< element of the parameter
  std::int64_t at = 0;     ///< element of the shard
  std::int64_t count = 0;
};

/// All of `rank`'s shard of a unit but the padding, in order of `at`.
std::vector<ShardPart> parts_of_shard(const FlatParameter& flat, int rank);

/// Part of a step with a fixed list of ops. A step is `only`, or first, middle (k − 2 times), last; then update.
struct Segment {
  enum class Name : std::uint8_t { only, first, middle, last, update, evaluate };
  Name name = Name::only;
  std::uint32_t first_op = 0, op_count = 0;
  /// By boundary point (freed, reduced, updated) and unit: the op that others may wait for; none where there is none.
  std::array<std::vector<OpId>, boundary_points> points;
};
std::string_view name_of(Segment::Name name);

/// How one optimizer step runs on one rank: the same on every rank but for `rank`, in plain data. The order of `ops`
/// within a segment is the order of issue; what precedes what is said by lanes and waits alone.
struct Plan {
  std::vector<Op> ops;
  std::vector<Operand> operands;
  std::vector<Wait> waits;
  std::vector<Buffer> buffers;
  std::vector<Segment> segments;
  std::vector<FlatParameter> units;  ///< by UnitId
  std::vector<std::string> unit_names;
  Mesh mesh;
  DType dtype = DType::f32;   ///< of shards of gradients and moments
  DType master = DType::f32;  ///< of shards of parameters
  int micro_batches = 1;
  std::int64_t micro_batch_tokens = 0;  ///< of one rank
  std::int64_t parameters = 0;
  std::int64_t arena_bytes = 0;       ///< of the device
  std::int64_t host_arena_bytes = 0;  ///< 0: nothing is offloaded
  float norm_power = 2;               ///< which norm of the gradient: 1, 2, 3 or infinity
  BufferId workspace;                 ///< of the compute lane's kernels; none if they need none
  BufferId norm, loss;  ///< norm_words() of all shards; results f64 {loss sum, valid tokens} over all ranks

  /// Of the elements of a shard that lies in a buffer, or of its staging buffer.
  DType shard_type(const Buffer& buffer) const { return buffer.memory == MemoryClass::parameters ? master : dtype; }

  /// i64 words from which the norm of the gradient follows: an exact sum of powers, or the largest magnitude of each
  /// shard.
  int norm_words() const;

  std::span<const Op> ops_of(const Segment& segment) const;
  std::span<const Operand> inputs(const Op& op) const;
  std::span<const Operand> outputs(const Op& op) const;
  std::span<const Wait> waits_of(const Op& op) const;
  std::int64_t arena_bytes_of(Space space) const { return space == Space::device ? arena_bytes : host_arena_bytes; }
  const Segment& segment(Segment::Name name) const;
  /// How often a step runs a segment.
  int times(const Segment& segment) const { return segment.name == Segment::Name::middle ? micro_batches - 2 : 1; }
  /// Segments of one whole step, in order; middle appears micro_batches − 2 times.
  std::vector<const Segment*> sequence() const;
};

/// Whether all ranks of the op's group do it together.
bool is_collective(OpKind kind);

/// "linear u3", or without a unit "sum_loss".
std::string name_of(const Plan& plan, const Op& op);

/// Bytes of a collective's whole (unsharded) buffer, as it travels.
std::int64_t payload_bytes(const Plan& plan, const Op& op);

/// Equal on two ranks exactly if they would run the same ops in the same order on the same bytes.
std::uint64_t hash_of(const Plan& plan);

}  // namespace foreshard::plan
