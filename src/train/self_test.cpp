#include "train/self_test.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/units.hpp"
#include "train/agreement.hpp"
#include "train/engine_trials.hpp"
#include "train/self_test_parts.hpp"

namespace foreshard::train {
namespace {

constexpr std::size_t most_scratch_bytes = std::size_t{4} << 20, room_of_products = 32 << 10;

/// Products by the calling thread alone: a team would stay, beside that of the compute lane.
class Alone {
 public:
  Alone() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~Alone() { omp_set_num_threads(before_); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  int before_;
};

/// Gives memory its old contents back.
class Borrowed {
 public:
  explicit Borrowed(std::span<std::byte> memory) : memory_(memory), before_(memory.begin(), memory.end()) {}
  ~Borrowed() { std::ranges::copy(before_, memory_.begin()); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

 private:
  std::span<std::byte> memory_;
  std::vector<std::byte> before_;
};

std::int64_t signed_difference(std::uint64_t later, std::uint64_t earlier) {
  return static_cast<std::int64_t>(later - earlier);
}

}  // namespace

std::int64_t clock_error_ns(comm::Communicator& communicator, const std::function<std::int64_t()>& clock_ns) {
  constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> ahead(static_cast<std::size_t>(communicator.size()), unknown), behind = ahead;
  for (int round = 0; round < 8; ++round) {
    const auto entered = communicator.all_gather_u64(static_cast<std::uint64_t>(clock_ns()));
    const auto left = communicator.all_gather_u64(static_cast<std::uint64_t>(clock_ns()));
    for (std::size_t rank = 0; rank < entered.size(); ++rank) {
      ahead[rank] = std::min(ahead[rank], signed_difference(left[rank], entered[0]));
      behind[rank] = std::min(behind[rank], signed_difference(left[0], entered[rank]));
    }
  }
  return std::max(std::ranges::max(ahead), std::ranges::max(behind));
}

namespace {

/// What the parts found, in that order of importance; and the clocks.
SelfTest result_of(comm::Communicator& communicator, const Checked& products, const Checked& collectives,
                   std::int64_t began_ns) {
  return {.collectives = collectives.checks,
          .products = products.checks,
          .fault = products.fault.empty() ? collectives.fault : products.fault,
          .clock_error_ns = clock_error_ns(communicator, now_ns),
          .duration_ns = now_ns() - began_ns};
}

}  // namespace

SelfTest self_test(comm::Communicator& communicator, const plan::Plan& plan, std::span<std::byte> scratch,
                   kernels::Backend& kernels) {
  const std::int64_t began_ns = now_ns();
  scratch = scratch.first(std::min(scratch.size(), most_scratch_bytes));
  const Alone alone;
  const Borrowed borrowed(scratch);
  const Checked products = check_products(
      plan, [&](const kernels::Matmul& shape, auto a, auto b, auto c) { kernels.matmul(shape, a, b, {}, c); });
  const Exchange exchange = exchange_between_groups(communicator, plan);
  return result_of(communicator, products, check_collectives(communicator, plan, scratch, exchange), began_ns);
}

SelfTest self_test(comm::Communicator& communicator, const plan::Plan& plan, engine::Engine& engine) {
  const std::int64_t began_ns = now_ns();
  EngineTrials trials(engine, plan);
  std::vector<std::byte> operands(std::min(trials.room_bytes(), most_scratch_bytes));
  const Checked products = operands.size() < room_of_products ? Checked{} : check_products(plan, trials.product());
  const Checked collectives = check_collectives(communicator, plan, operands, trials.exchange());
  return result_of(communicator, products, collectives, began_ns);
}

namespace {

void expect_sound(comm::Communicator& communicator, const SelfTest& result, std::string_view machine) {
  together(communicator, [&] {
    if (result.fault.empty()) return;
    throw InputError(ExitCode::outside,
                     fmt::format("the start-up self-test failed on rank {}: {}\n{}; --engine.self_test=false starts "
                                 "without the test",
                                 communicator.rank(), result.fault, machine));
  });
  log_info("self-test    {} collectives and {} matrix products are right, clocks differ by at most {}, took {}",
           result.collectives, result.products, duration_text(static_cast<double>(result.clock_error_ns) * 1e-9),
           duration_text(static_cast<double>(result.duration_ns) * 1e-9));
}

}  // namespace

SelfTest expect_sound_machine(comm::Communicator& communicator, const plan::Plan& plan, std::span<std::byte> scratch,
                              kernels::Backend& kernels) {
  const SelfTest result = self_test(communicator, plan, scratch, kernels);
  expect_sound(communicator, result,
               fmt::format("ranks are connected by {}, products are made by the {} kernels; try another node, or "
                           "--comm.backend=messages",
                           communicator.transport(), kernels.name()));
  return result;
}

SelfTest expect_sound_devices(comm::Communicator& communicator, const plan::Plan& plan, engine::Engine& engine) {
  const SelfTest result = self_test(communicator, plan, engine);
  expect_sound(communicator, result,
               "collectives are NCCL's and products cuBLASLt's, on CUDA devices; try another node, or NCCL_ALGO=Ring");
  return result;
}

}  // namespace foreshard::train
