#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "base/dtype.hpp"
#include "base/ids.hpp"
#include "model/graph.hpp"
#include "plan/mesh.hpp"

namespace foreshard::plan {

using model::OpKind;
using model::Phase;
using model::Sizes;
using model::UnitId;
using OpId = Id<struct OpTag>;          ///< index into Plan::ops
using BufferId = Id<struct BufferTag>;  ///< index into Plan::buffers

/// An ordered queue: its ops start in list order, each after the one before it has ended.
enum class Lane : std::uint8_t { compute, gather, reduce, replicate, copy };
constexpr int lane_count = 5;
std::string_view name_of(Lane lane);

/// Which memory: of the device that computes, or of its host. A rank on processor cores has both in main memory, in
/// arenas of their own.
enum class Space : std::uint8_t { device, host };
constexpr int space_count = 2;
std::string_view name_of(Space space);

/// What a buffer's bytes are for.
enum class MemoryClass : std::uint8_t {
  parameters,
  gradients,
  optimizer,
  gathered,
  unsharded_gradients,
  activations,
  batch,
  workspace,  ///< of kernels, while they run
  count_
};
std::string_view name_of(MemoryClass kind);

/// Bytes of the arena of its space. A persistent buffer lives for the whole run, any other from the first op that
/// touches it to the last.
struct Buffer {
  std::int64_t size_bytes = 0;     ///< a multiple of 64
  std::int64_t offset_bytes = -1;  ///< into the arena, a multiple of 64; set by `place`
  MemoryClass memory = MemoryClass::activations;
  Space space = Space::device;
  bool persistent = false;
  model::TensorId tensor;  ///< the tensor it holds, if it holds one
  UnitId unit;             ///< the unit it belongs to, if it belongs to one
};

/// Part of a buffer as an op's operand. An absent optional operand has no buffer.
struct Operand {
  BufferId buffer;
  std::int64_t offset_bytes = 0;
  std::int64_t size_bytes = 0;
  DType dtype = DType::f32;
  bool written = false;
  bool present() const { return buffer.valid(); }
};

/// Something an op waits for besides its own lane: an op before it in its own segment, or a point of the segment
/// before.
struct Wait {
  enum class On : std::uint8_t {
    op,       ///< the op `index` of this plan, in the same segment
    freed,    ///< unit `index`'s last use in the previous segment
    reduced,  ///< the end of unit `index`'s reduction in the previous segment
    updated   ///< unit `index`'s optimizer update in the previous segment
  };
  On on = On::op;
  std::uint32_t index = 0;
  friend bool operator==(const Wait&, const Wait&) = default;
};
constexpr int boundary_points = 3;  ///< freed, reduced, updated

/// One step of work on one lane. Ranges index Plan::operands and Plan::waits.
struct Op {
  OpKind kind{};
  Lane lane = Lane::compute;
  Phase phase = Phase::forward;
  GroupKind group = GroupKind::none;
  bool accumulate = false;  ///< add to the written operand instead of overwriting it
  UnitId unit;
  Sizes sizes;
  float scalar = 0;
  std::uint32_t stream = 0;
  std::uint32_t first_operand = 0, input_count = 0, output_count = 0;
  std::uint32_t first_wait = 0, wait_count = 0;
  model::Cost cost;
  double wire_bytes = 0;  ///< bytes that the first rank of the group receives from the others
};

}  // namespace foreshard::plan
