#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "plan/op.hpp"
#include "trace/recorder.hpp"

namespace foreshard::trace {

enum class Kind : std::uint8_t { measured, predicted };
constexpr std::size_t op_kind_count = static_cast<std::size_t>(plan::OpKind::count_);
constexpr std::size_t memory_class_count = static_cast<std::size_t>(plan::MemoryClass::count_);

/// Bytes by plan::MemoryClass.
using BytesByClass = std::array<std::int64_t, memory_class_count>;

/// What a trace says about its run as a whole.
struct RunInfo {
  Kind kind = Kind::measured;
  std::string run_id;
  std::string command_line;
  std::string config_json = "{}";  ///< resolved configuration
  int world_size = 1;
  std::int64_t time_origin_unix_ns = 0;  ///< Unix time at which the clock of the events read 0
  std::string clock = "CLOCK_MONOTONIC";
  std::int64_t clock_error_ns = 0;  ///< estimated difference between the clocks of two ranks
};

/// Where a rank ran.
struct RankInfo {
  std::string host;
  std::int32_t node = 0, local_rank = 0;
};

/// One optimizer step of one rank, from its first op's issue to its last op's end.
struct StepRow {
  std::int32_t step = 0;
  std::uint32_t rank = 0;
  std::int64_t start_ns = 0, duration_ns = 0;
  double loss = 0, grad_norm = 0;  ///< over all ranks; NaN where there is none
  std::int64_t tokens = 0;         ///< of this rank
};

/// Memory of one rank at the moment of a step when most of the device's arena was live. The host's, which holds only
/// what is persistent, does not change.
struct MemoryRow {
  std::uint32_t rank = 0;
  std::int32_t step = 0;
  std::int64_t time_ns = 0;
  BytesByClass bytes{};                  ///< live bytes of the arena
  std::int64_t arena_touched_bytes = 0;  ///< pages of the arena written so far; measured, not planned
  std::int64_t rss_bytes = 0;            ///< resident memory of the process
};

/// What one rank's collectives move in one step.
struct CollectiveTotal {
  std::uint64_t count = 0;
  std::uint64_t payload_bytes = 0;   ///< size of the whole (unsharded) buffer, summed over calls
  std::uint64_t received_bytes = 0;  ///< bytes that came from other ranks
  friend bool operator==(const CollectiveTotal&, const CollectiveTotal&) = default;
};
struct Collectives {
  CollectiveTotal all_gather, reduce_scatter, all_reduce;
  friend bool operator==(const Collectives&, const Collectives&) = default;
};

/// The run in a few numbers; in a measured trace from counters, never from the plan. Memory is that of the largest
/// rank.
struct Summary {
  Collectives collectives;
  std::int64_t arena_bytes = 0, arena_touched_bytes = 0;
  std::int64_t host_arena_bytes = 0;  ///< for what is offloaded
  std::int64_t rss_bytes = 0;         ///< peak resident memory of the process
  std::int64_t base_rss_bytes = 0;    ///< the same before the arena was used
  double step_time_s = 0;             ///< median after warm-up
  double tflops_per_device = 0;
  double exposed_comm_s = 0;  ///< per step: a communication lane busy, compute idle
};

/// A row of /events: the event, and the facts of its op that a reader needs without joining.
struct EventRow {
  std::uint32_t rank = 0;
  Event event;
  plan::Lane lane{};
  plan::OpKind kind{};
  plan::UnitId unit;
  std::uint64_t bytes = 0;  ///< read and written
  double flops = 0;
};

/// Rows [first_row, first_row + row_count) of /events are all of one rank.
struct Batch {
  std::uint32_t rank = 0;
  std::uint64_t first_row = 0, row_count = 0;
};

}  // namespace foreshard::trace
