#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "comm/communicator.hpp"
#include "kernels/backend.hpp"
#include "plan/plan.hpp"

namespace foreshard::train {

/// How many checks were made, and the first that failed on this rank; empty: none.
struct Checked {
  int checks = 0;
  std::string fault;
};

/// Collective: see self_test.
Checked check_collectives(comm::Communicator& communicator, const plan::Plan& plan, std::span<std::byte> scratch);

/// C = op(A)·op(B) of small integers, whose sums are exact in every type, between rows of NaN: each element must be
/// right, the row of a NaN row NaN, and nothing else written.
using Product = std::function<void(const kernels::Matmul&, kernels::Const a, kernels::Const b, kernels::Mut c)>;
Checked check_products(const plan::Plan& plan, const Product& product);

/// Collective: how much the clock of any rank may differ from rank 0's, in nanoseconds; the same on all ranks. A rank
/// leaves an all-gather no sooner than any other enters it, which bounds the difference of two clocks from both sides;
/// the bounds are as tight as an all-gather is quick.
std::int64_t clock_error_ns(comm::Communicator& communicator, const std::function<std::int64_t()>& clock_ns);

}  // namespace foreshard::train
