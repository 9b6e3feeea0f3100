#pragma once
#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "base/hash.hpp"
#include "base/random.hpp"
#include "contract/comm/group_contract.hpp"

/// The cases of the contract of groups: include it in one file per implementation, and instantiate.
namespace foreshard::comm::testing {

class GroupContract : public OnEveryRank {};

constexpr std::int64_t mebibyte = 1 << 20;

TEST_P(GroupContract, CollectivesOfEveryTypeAndCount) {
  on_every_rank(2 * mebibyte, [&](Communicator& ranks, std::span<std::byte> arena) {
    const std::vector<int> members = all_ranks(size());
    const auto group = ranks.group(members);
    const Subject subject{GetParam(), ranks, *group, members, Deal(arena)};
    for (const int count : {0, 1, size() - 1, size(), size() + 1, 37, 1024, 1537}) {
      check_collectives_of_every_type(subject, count);
    }
  });
}

// Several chunks of scratch; results that are stored past the cache (from 4 MiB).
TEST_P(GroupContract, LargeCollectives) {
  on_every_rank(32 * mebibyte, [&](Communicator& ranks, std::span<std::byte> arena) {
    const std::vector<int> members = all_ranks(size());
    const auto group = ranks.group(members);
    const Subject subject{GetParam(), ranks, *group, members, Deal(arena)};
    const std::int64_t past_cache = 4 * mebibyte / 8, several_chunks = size() * 100'000 + 3;
    check_all_gather<std::int64_t>(subject, past_cache / std::max(1, size() - 1) + 5, true);
    if (size() <= 3) check_reduce_scatter<double>(subject, past_cache + 5, false);
    check_all_reduce<double>(subject, past_cache + 5, Reduce::in_place);
    check_all_reduce<float>(subject, several_chunks, Reduce::accumulate);
    check_all_reduce<Bf16>(subject, several_chunks, Reduce::accumulate);
    check_all_reduce<Bf16, float>(subject, several_chunks, Reduce::accumulate);
    check_all_reduce<float, Bf16>(subject, several_chunks, Reduce::apart);
  });
}

TEST_P(GroupContract, OneMemberActsAlone) {
  on_every_rank(mebibyte, [&](Communicator& ranks, std::span<std::byte> arena) {
    const std::vector<int> members{ranks.rank()};
    const auto group = ranks.group(members);
    EXPECT_EQ(group->size(), 1);
    check_collectives_of_every_type({GetParam(), ranks, *group, members, Deal(arena)}, 1001);
    EXPECT_EQ(ranks.counters().all_gather.received_bytes, 0U);
    EXPECT_EQ(ranks.counters().all_reduce.received_bytes, 0U);
  });
}

TEST_P(GroupContract, StridedGroupsActIndependently) {
  if (GetParam().groups_are_of_one_size && size() % 2 != 0) GTEST_SKIP() << "one group is larger than the other";
  on_every_rank(mebibyte, [&](Communicator& ranks, std::span<std::byte> arena) {
    std::vector<int> members;
    for (int rank = ranks.rank() % 2; rank < size(); rank += 2) members.push_back(rank);
    const auto group = ranks.group(members);
    EXPECT_EQ(group->index(), ranks.rank() / 2);
    for (int repeat = 0; repeat <= ranks.rank() % 2; ++repeat)
      check_collectives<float>({GetParam(), ranks, *group, members, Deal(arena)}, 501);
  });
}

TEST_P(GroupContract, OrderOfMembersIsTheOrderOfShards) {
  on_every_rank(mebibyte, [&](Communicator& ranks, std::span<std::byte> arena) {
    std::vector<int> members = all_ranks(size());
    std::reverse(members.begin(), members.end());
    const auto group = ranks.group(members);
    check_collectives<float>({GetParam(), ranks, *group, members, Deal(arena)}, 129);
  });
}

TEST_P(GroupContract, BitsDoNotDependOnWhoIsLate) {
  on_every_rank(mebibyte, [&](Communicator& ranks, std::span<std::byte> arena) {
    const std::vector<int> members = all_ranks(size());
    const auto group = ranks.group(members);
    const Subject subject{GetParam(), ranks, *group, members, Deal(arena)};
    for (int round = 0; round < 40; ++round) {
      const auto dice = philox(1, static_cast<std::uint64_t>(ranks.rank()), static_cast<std::uint64_t>(round));
      if (dice[0] % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(dice[1] % 300));
      check_all_gather<float>(subject, 333, round % 2 == 0);
      check_reduce_scatter<float>(subject, 333, round % 2 == 1);
      check_all_reduce<float>(subject, 333, static_cast<Reduce>(round % 3));
    }
  });
}

/// A hash of what an all-reduce or a reduce-scatter leaves that all ranks ask for alike.
template <class T, class To>
std::uint64_t hash_of_a_sum(Subject s, bool accumulate, bool scatters) {
  constexpr std::int64_t count = 1003;
  const SumTypes types(dtype_of<T>, dtype_of<To>);
  if (!s.makes(types, accumulate)) return 0;
  const std::span<T> x = s.deal.next<T>(count * s.group.size());
  const std::span<To> sum = s.deal.next<To>(count);
  fill(x, s.rank());
  fill(sum, 1000);
  if (scatters)
    s.group.reduce_scatter(x.data(), sum.data(), count, types, accumulate);
  else
    s.group.all_reduce(x.data(), sum.data(), count, types, accumulate);
  return Hash().add(std::string_view(reinterpret_cast<const char*>(sum.data()), sum.size_bytes())).value();
}

/// Of every pair of types.
inline std::vector<std::uint64_t> hashes_of_sums(const Subject& s, bool scatters) {
  std::vector<std::uint64_t> hashes;
  for (const bool accumulate : {false, true}) {
    hashes.push_back(hash_of_a_sum<float, float>(s, accumulate, scatters));
    hashes.push_back(hash_of_a_sum<double, double>(s, accumulate, scatters));
    hashes.push_back(hash_of_a_sum<Bf16, Bf16>(s, accumulate, scatters));
    hashes.push_back(hash_of_a_sum<F16, F16>(s, accumulate, scatters));
    hashes.push_back(hash_of_a_sum<Bf16, float>(s, accumulate, scatters));
    hashes.push_back(hash_of_a_sum<F16, float>(s, accumulate, scatters));
    hashes.push_back(hash_of_a_sum<float, Bf16>(s, accumulate, scatters));
    hashes.push_back(hash_of_a_sum<float, F16>(s, accumulate, scatters));
  }
  return hashes;
}

TEST_P(GroupContract, EveryRankHasTheSameBits) {
  on_every_rank(mebibyte, [&](Communicator& ranks, std::span<std::byte> arena) {
    const std::vector<int> members = all_ranks(size());
    const auto group = ranks.group(members);
    for (const std::uint64_t hash : hashes_of_sums({GetParam(), ranks, *group, members, Deal(arena)}, false))
      EXPECT_EQ(ranks.all_gather_u64(hash), std::vector<std::uint64_t>(members.size(), hash));
  });
}

TEST_P(GroupContract, ASecondRunHasTheSameBits) {
  std::mutex mutex;
  std::map<int, std::vector<std::uint64_t>> runs[2];  // by rank
  for (int run = 0; run < 2; ++run)
    on_every_rank(mebibyte, [&](Communicator& ranks, std::span<std::byte> arena) {
      const std::vector<int> members = all_ranks(size());
      const auto group = ranks.group(members);
      std::this_thread::sleep_for(std::chrono::microseconds(300 * ((ranks.rank() + run) % 2)));
      const auto hashes = hashes_of_sums({GetParam(), ranks, *group, members, Deal(arena)}, true);
      const std::lock_guard lock(mutex);
      runs[run][ranks.rank()] = hashes;
    });
  EXPECT_FALSE(runs[0].empty());
  EXPECT_EQ(runs[0], runs[1]);
}

}  // namespace foreshard::comm::testing
