// Where shards lie and when they are copied, in plans that keep some of them in host memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/query.hpp"
#include "timing_oracle.hpp"
#include "tiny.hpp"

namespace foreshard::plan {
namespace {

constexpr Offload parameters{.parameters = true}, gradients{.gradients = true}, optimizer{.optimizer = true},
    everything{.parameters = true, .gradients = true, .optimizer = true};

Plan plan_of(const Offload& offload, const Mesh& mesh = {.inner = 8}, ScheduleOptions options = {}) {
  options.offload = offload;
  return build_plan(tiny_graph(), mesh, options);
}

std::vector<Offload> combinations() {
  std::vector<Offload> all;
  for (int bits = 0; bits < 8; ++bits) all.push_back({(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
  return all;
}

TEST(Offload, EveryCombinationIsPlacedAndOrderedRightly) {
  for (const Offload& offload : combinations())
    for (const Mesh& mesh : {Mesh{}, Mesh{1, 1, 2}, Mesh{3, 1, 1}, Mesh{2, 1, 2}, Mesh{2, 2, 2}})
      for (const Accumulation accumulation :
           {Accumulation::reduce, Accumulation::reduce_scatter, Accumulation::no_sync})
        for (const int micro_batches : {1, 2, 4}) {
          const Plan plan = plan_of(offload, mesh, {.accumulation = accumulation, .micro_batches = micro_batches});
          const std::string what =
              fmt::format("parameters {} gradients {} optimizer {}, mesh {}x{}x{}, accumulation {}, {} micro-batches",
                          offload.parameters, offload.gradients, offload.optimizer, mesh.replicas, mesh.outer,
                          mesh.inner, static_cast<int>(accumulation), micro_batches);
          EXPECT_THAT(TimingOracle(plan).overlaps(), testing::IsEmpty()) << what;
          EXPECT_THAT(TimingOracle(plan, 1).hazards(), testing::IsEmpty()) << what;
        }
}

std::int64_t shard_bytes(const Plan& plan, UnitId unit) { return 4 * plan.units[unit.value].shard_elements; }

std::int64_t all_shard_bytes(const Plan& plan) {
  std::int64_t bytes = 0;
  for (std::uint32_t unit = 0; unit < plan.units.size(); ++unit) bytes += shard_bytes(plan, {unit});
  return bytes;
}

TEST(Offload, TheHostHoldsWhatIsMovedAndNothingElse) {
  for (const Offload& offload : combinations()) {
    const Plan plan = plan_of(offload);
    const int moved = offload.parameters + offload.gradients + 2 * offload.optimizer;
    EXPECT_EQ(plan.host_arena_bytes, moved * all_shard_bytes(plan));
  }
}

}  // namespace
}  // namespace foreshard::plan
