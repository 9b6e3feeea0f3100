#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "comm/communicator.hpp"
#include "kernels/backend.hpp"
#include "plan/plan.hpp"
#include "train/elements.hpp"

namespace foreshard::train {

/// How many checks were made, and the first that failed on this rank; empty: none.
struct Checked {
  int checks = 0;
  std::string fault;
};

/// One collective that a plan uses.
struct Collective {
  plan::OpKind kind{};
  plan::GroupKind group{};
  plan::Lane lane{};
  DType from{}, to{};
  bool accumulate = false;
  auto operator<=>(const Collective&) const = default;

  bool gathers() const { return kind == plan::OpKind::all_gather || kind == plan::OpKind::gather_norm; }
  bool scatters() const { return kind == plan::OpKind::reduce_scatter; }
};

/// Carries one out together with the other members of its group; `count` elements of its smaller side.
using Exchange =
    std::function<void(const Collective&, std::int64_t count, const Elements& input, const Elements& output)>;
/// By groups of the communicator, in memory of its arena. Both outlive it.
Exchange exchange_between_groups(comm::Communicator& communicator, const plan::Plan& plan);

/// Collective: see self_test. Operands lie in `scratch`.
Checked check_collectives(comm::Communicator& communicator, const plan::Plan& plan, std::span<std::byte> scratch,
                          const Exchange& exchange);

/// C = op(A)·op(B) of small integers, whose sums are exact in every type, between rows of NaN: each element must be
/// right, the row of a NaN row NaN, and nothing else written: matrices have `rows_around` more rows on either side.
inline constexpr std::int64_t rows_around = 3;
using Product = std::function<void(const kernels::Matmul&, kernels::Const a, kernels::Const b, kernels::Mut c)>;
Checked check_products(const plan::Plan& plan, const Product& product);

/// Collective: how much the clock of any rank may differ from rank 0's, in nanoseconds; the same on all ranks. A rank
/// leaves an all-gather no sooner than any other enters it, which bounds the difference of two clocks from both sides;
/// the bounds are as tight as an all-gather is quick.
std::int64_t clock_error_ns(comm::Communicator& communicator, const std::function<std::int64_t()>& clock_ns);

}  // namespace foreshard::train
