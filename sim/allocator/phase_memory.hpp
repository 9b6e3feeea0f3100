#pragma once
#include <optional>

#include "sim/allocator/label.hpp"
#include "sim/allocator/out_of_memory.hpp"

namespace foreshard::sim::allocator {

/// Parts of a run that need memory of their own: building the model, a first step without optimizer state until it
/// ends, steps with it, and saving.
enum class RunPhase : std::uint8_t { init, first_step, steady, save };
inline constexpr std::array<std::string_view, 4> run_phase_names{"init", "first step", "steady", "checkpoint save"};

/// What one phase takes of the allocator, at its peaks.
struct PhaseMemory {
  RunPhase phase{};
  Bytes allocated = 0;                 ///< peak
  Bytes reserved = 0;                  ///< peak; at least the peak of allocated
  bool simulated = false;              ///< by the allocator; else by formulas, which know no fragmentation
  BytesByClass by_class{};             ///< at the peak of allocated
  std::int64_t retries = 0;            ///< while the phase ran
  std::optional<OutOfMemory> failure;  ///< if it ran out; empty where no more is known
};

/// How parameters come onto the device.
enum class Loading : std::uint8_t {
  whole,   ///< every rank has the whole model there before it is sharded, unit by unit
  sharded  ///< deferred initialisation or sharded loading: only shards are there
};
/// What a checkpoint needs on the device besides what is there.
enum class Saving : std::uint8_t {
  sharded,       ///< nothing
  full_to_host,  ///< a unit's whole parameters at a time
  full           ///< the whole parameters
};

/// A fully sharded training run in numbers: what its memory follows from.
struct StateNeeds {
  double parameters = 0;       ///< of the model
  double largest_unit = 0;     ///< parameters of the largest unit of sharding but the root
  double root_unit = 0;        ///< parameters that stay gathered: embeddings and head
  int shards = 1;              ///< ranks of a shard group
  double parameter_bytes = 4;  ///< a sharded parameter
  double gradient_bytes = 4;   ///< its sharded gradient
  double moment_bytes = 8;     ///< its optimizer state
  double compute_bytes = 2;    ///< a gathered parameter, an unsharded gradient
  int gathers = 2;             ///< gathered units at once; 0: as many as there are
  bool foreach = true;         ///< the optimizer makes a copy of the size of the shards (pytorch/pytorch#97712)
  Loading loading = Loading::sharded;
  double load_bytes = 4;  ///< a parameter, while it is loaded
  Saving saving = Saving::sharded;
  Bytes activations = 0, loss = 0, workspace = 0;
};

/// The four phases by formulas. Gathered units are of a pool of their own, which the compute stream cannot use: what is
/// reserved is the sum of both pools' peaks, what is allocated the peak of their sum.
std::array<PhaseMemory, 4> phases_of(const StateNeeds& needs);

}  // namespace foreshard::sim::allocator
