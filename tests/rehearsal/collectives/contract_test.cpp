// The contract of groups over NCCL between rehearsed devices, in the way the engine makes collectives of channels.
#include "contract/comm/group_contract_cases.hpp"
#include "rehearsal/collectives/device_threads.hpp"

namespace foreshard::comm::testing {
namespace {

/// Streams are late at random, otherwise each time.
void on_delayed_devices(int devices, const std::function<void(Communicator&)>& function) {
  static std::uint64_t seed = 0;
  on_devices(devices, ++seed, function);
  const rehearsal::Live left = rehearsal::live();
  EXPECT_EQ(left.allocations + left.streams + left.communicators, 0);
  EXPECT_TRUE(rehearsal::reports().empty()) << rehearsal::reports().front();
}

Run devices(int count) {
  return {.name = "devices_" + std::to_string(count),
          .size = count,
          .on_every_rank = [count](const auto& function) { on_delayed_devices(count, function); },
          .sums = Sums::in_any_order,
          .only_floats_add_up = true,
          .groups_are_of_one_size = true};
}

INSTANTIATE_TEST_SUITE_P(Nccl, GroupContract,
                         ::testing::Values(devices(1), devices(2), devices(3), devices(4), devices(5), devices(8)),
                         name_of_run);

/// In how many of 1000 sums of eight the bounds notice one number that is left out, or counted twice. Numbers are of
/// sizes up to 2^7 apart, so that halves do not show the small ones among large ones.
template <class T>
int noticed() {
  const std::vector<int> members = all_ranks(8);
  int count = 0;
  for (int i = 0; i < 1000; ++i)
    count += std::abs(static_cast<long double>(wide(element<T>(i % 8, i)))) > 2 * bounded_sum<T>(members, i).error;
  return count;
}

TEST(Bounds, AreNarrowerThanOneNumber) {
  EXPECT_GT(noticed<float>(), 990);
  EXPECT_GT(noticed<F16>(), 750);
  EXPECT_GT(noticed<Bf16>(), 400);
}

}  // namespace
}  // namespace foreshard::comm::testing
