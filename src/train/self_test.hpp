#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "comm/communicator.hpp"
#include "engine/engine.hpp"
#include "kernels/backend.hpp"
#include "plan/plan.hpp"

namespace foreshard::train {

/// What the start-up self-test found.
struct SelfTest {
  int collectives = 0, products = 0;  ///< checked
  std::string fault;                  ///< the first that was wrong on this rank; empty: none
  std::int64_t clock_error_ns = 0;    ///< the clock of no rank differs from rank 0's by more; the same on all ranks
  std::int64_t duration_ns = 0;
};

/// Collective. Tries on this machine, with small and odd sizes, what the plan relies on: each of its collectives, on
/// its kind of group and with its types, against sums that follow from (rank, index) alone; the matrix products of its
/// types, at sizes that are no multiple of a vector, beside rows that are NaN; and the clocks. `scratch` is a part of
/// the arena, the same on all ranks; it comes back as it was. Sizes that do not fit into it are left out.
SelfTest self_test(comm::Communicator& communicator, const plan::Plan& plan, std::span<std::byte> scratch,
                   kernels::Backend& kernels);

/// Collective: the same by ops that the engine carries out, one by one, in the transient part of its device arena.
SelfTest self_test(comm::Communicator& communicator, const plan::Plan& plan, engine::Engine& engine);

/// Collective: the self-test, with its result in one line of the log. Throws InputError(outside), on the first rank
/// that found a fault, and ends the others as `together` does.
SelfTest expect_sound_machine(comm::Communicator& communicator, const plan::Plan& plan, std::span<std::byte> scratch,
                              kernels::Backend& kernels);
SelfTest expect_sound_devices(comm::Communicator& communicator, const plan::Plan& plan, engine::Engine& engine);

}  // namespace foreshard::train
