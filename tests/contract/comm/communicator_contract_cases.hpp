#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/error.hpp"
#include "contract/comm/group_contract_cases.hpp"

/// The cases of the contract of whole communicators, beside those of groups: include it in one file per implementation,
/// and instantiate.
namespace foreshard::comm::testing {

class CommunicatorContract : public OnEveryRank {};

TEST_P(CommunicatorContract, NamesItsRanks) {
  std::atomic<int> sum{0}, here{0};
  on_every_rank(4096, [&](Communicator& ranks, std::span<std::byte>) {
    EXPECT_EQ(ranks.size(), size());
    EXPECT_EQ(ranks.all_gather_u64(static_cast<std::uint64_t>(ranks.rank()) + 7).size(),
              static_cast<std::size_t>(size()));
    EXPECT_GE(ranks.node_rank(), 0);
    EXPECT_LT(ranks.node_rank(), ranks.node_size());
    EXPECT_FALSE(ranks.transport().empty());
    sum += ranks.rank();
    ++here;
  });
  if (here == size()) {
    EXPECT_EQ(sum, size() * (size() - 1) / 2);
  }
}

TEST_P(CommunicatorContract, ArenaIsZeroedAndAligned) {
  on_every_rank(3 * mebibyte + 5, [&](Communicator&, std::span<std::byte> arena) {
    EXPECT_EQ(arena.size(), static_cast<std::size_t>(3 * mebibyte + 5));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.data()) % 4096, 0U);
    EXPECT_EQ(std::count(arena.begin(), arena.end(), std::byte{0}), static_cast<std::ptrdiff_t>(arena.size()));
  });
}

TEST_P(CommunicatorContract, UntouchedPagesAreNotInMemory) {
  constexpr std::size_t pages = 1 << 18, huge_page = 512;
  on_every_rank(pages * 4096, [&](Communicator& ranks, std::span<std::byte> arena) {
    arena[0] = std::byte{1};
    ranks.barrier();
    std::vector<unsigned char> present(pages);
    ASSERT_EQ(mincore(arena.data(), arena.size(), present.data()), 0);
    EXPECT_LE(std::count_if(present.begin(), present.end(), [](unsigned char page) { return page & 1; }), huge_page);
  });
}

TEST_P(CommunicatorContract, MovesHostData) {
  on_every_rank(4096, [&](Communicator& ranks, std::span<std::byte>) {
    const int rank = ranks.rank(), last = ranks.size() - 1;
    std::vector<std::byte> data(100'000, static_cast<std::byte>(rank == last ? 42 : 0));
    ranks.broadcast(data, last);
    EXPECT_EQ(std::count(data.begin(), data.end(), std::byte{42}), 100'000);
    ranks.broadcast({}, 0);
    const std::vector<std::byte> own(static_cast<std::size_t>(rank * 3), static_cast<std::byte>(rank));
    const auto gathered = ranks.gather(own);
    ASSERT_EQ(gathered.size(), rank == 0 ? static_cast<std::size_t>(ranks.size()) : 0U);
    for (std::size_t r = 0; r < gathered.size(); ++r)
      EXPECT_EQ(gathered[r], std::vector<std::byte>(r * 3, static_cast<std::byte>(r)));
    const auto values = ranks.all_gather_u64(~static_cast<std::uint64_t>(rank));
    for (std::size_t r = 0; r < values.size(); ++r) EXPECT_EQ(values[r], ~static_cast<std::uint64_t>(r));
    ranks.barrier();
  });
}

TEST_P(CommunicatorContract, BarrierHoldsEveryoneBack) {
  std::atomic<int> arrived{0};
  GetParam().on_every_rank([&](Communicator& ranks) {
    ++arrived;
    ranks.barrier();
    const int seen = arrived;
    EXPECT_TRUE(seen == 1 || seen == ranks.size()) << seen << " of " << ranks.size();  // 1: the others are processes
  });
}

/// 1 from member 0 and a quarter of its unit in the last place, 2^-9, from each other member: a sum in bf16 would
/// stay 1. In f32 it is exact, and a bf16 result is within half a unit of it, 2^-8 of 1, however many members there
/// are.
TEST_P(CommunicatorContract, HalvesAreSummedInFloat) {
  on_every_rank(mebibyte, [&](Communicator& ranks, std::span<std::byte> arena) {
    const auto group = ranks.group(all_ranks(size()));
    Deal deal(arena);
    const auto x = deal.next<Bf16>(size()), rounded = deal.next<Bf16>(size());
    const auto exact = deal.next<float>(size()), shard = deal.next<float>(1);
    std::fill(x.begin(), x.end(), narrow<Bf16>(ranks.rank() == 0 ? 1.0F : 0x1p-9F));
    const float sum = 1.0F + static_cast<float>(size() - 1) * 0x1p-9F;
    group->all_reduce(x.data(), exact.data(), size(), {DType::bf16, DType::f32}, false);
    group->all_reduce(x.data(), rounded.data(), size(), DType::bf16, false);
    group->reduce_scatter(x.data(), shard.data(), 1, {DType::bf16, DType::f32}, false);
    EXPECT_EQ(shard[0], sum);
    for (int i = 0; i < size(); ++i) {
      EXPECT_EQ(exact[i], sum);
      EXPECT_LE(std::abs(wide(rounded[i]) - sum), 0x1p-8F);
    }
  });
}

TEST_P(CommunicatorContract, GroupsDrivenBySeveralThreads) {
  constexpr int lanes = 3;
  on_every_rank(lanes * mebibyte, [&](Communicator& ranks, std::span<std::byte> arena) {
    const std::vector<int> members = all_ranks(size());
    std::vector<std::unique_ptr<Group>> groups;
    for (int lane = 0; lane < lanes; ++lane) groups.push_back(ranks.group(members));
    std::vector<std::thread> threads;
    for (int lane = 0; lane < lanes; ++lane) {
      threads.emplace_back([&, lane] {
        const Deal own(arena.subspan(static_cast<std::size_t>(lane * mebibyte), mebibyte));
        for (int repeat = 0; repeat < 5; ++repeat)
          check_collectives<float>({GetParam(), ranks, *groups[lane], members, own}, 1000 + 100 * lane + repeat);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

/// ⌊(i+1)·count/P⌋ − ⌊i·count/P⌋ elements are reduced by member i: it receives them from the P − 1 others, and the rest
/// reduced.
inline std::uint64_t all_reduce_received(std::int64_t count, int index, int members, std::int64_t element_bytes,
                                         std::int64_t reduced_bytes) {
  const std::int64_t own = (index + 1) * count / members - index * count / members;
  return static_cast<std::uint64_t>(own * (members - 1) * element_bytes + (count - own) * reduced_bytes);
}

TEST_P(CommunicatorContract, CountsWhatMoved) {
  on_every_rank(4 * mebibyte, [&](Communicator& ranks, std::span<std::byte> arena) {
    const auto group = ranks.group(all_ranks(size()));
    std::byte* data = arena.data();
    const auto members = static_cast<std::uint64_t>(size());
    for (int i = 0; i < 3; ++i) group->all_gather(data, data + mebibyte, 100, DType::bf16);
    for (int i = 0; i < 2; ++i) group->reduce_scatter(data, data + mebibyte, 50, DType::f32, false);
    group->all_reduce(data, data + mebibyte, 1003, DType::f32, false);
    group->all_reduce(data, data + mebibyte, 1003, DType::bf16, true);
    const Counters seen = ranks.counters();
    EXPECT_EQ(seen.all_gather.calls, 3U);
    EXPECT_EQ(seen.all_gather.payload_bytes, 3 * 200 * members);
    EXPECT_EQ(seen.all_gather.received_bytes, 3 * 200 * (members - 1));
    EXPECT_EQ(seen.reduce_scatter.calls, 2U);
    EXPECT_EQ(seen.reduce_scatter.payload_bytes, 2 * 200 * members);
    EXPECT_EQ(seen.reduce_scatter.received_bytes, 2 * 200 * (members - 1));
    EXPECT_EQ(seen.all_reduce.calls, 2U);
    EXPECT_EQ(seen.all_reduce.payload_bytes, 1003U * 6);
    EXPECT_EQ(seen.all_reduce.received_bytes, all_reduce_received(1003, ranks.rank(), size(), 4, 4) +
                                                  all_reduce_received(1003, ranks.rank(), size(), 2, 4));
  });
}

TEST_P(CommunicatorContract, NoticesAreSeenWithoutTheirOwnersHelp) {
  on_every_rank(4096, [&](Communicator& ranks, std::span<std::byte>) {
    const auto notices = ranks.notice_board(100);
    ASSERT_EQ(static_cast<int>(notices.size()), ranks.node_size());
    const std::span<std::byte> own = notices[static_cast<std::size_t>(ranks.node_rank())];
    ASSERT_EQ(own.size(), 100U);
    EXPECT_EQ(own[99], std::byte{0});
    own[99] = static_cast<std::byte>(1 + ranks.node_rank());
    ranks.barrier();
    for (std::size_t rank = 0; rank < notices.size(); ++rank) {
      if (notices[rank].empty()) continue;
      EXPECT_EQ(notices[rank][99], static_cast<std::byte>(1 + rank));
    }
    ranks.barrier();
  });
}

TEST_P(CommunicatorContract, RefusesGroupsThatDoNotFit) {
  on_every_rank(4096, [&](Communicator& ranks, std::span<std::byte>) {
    EXPECT_THROW(ranks.group({}), ContractError);
    const std::vector<int> outside{ranks.rank(), ranks.size()}, twice{ranks.rank(), ranks.rank()};
    EXPECT_THROW(ranks.group(outside), ContractError);
    EXPECT_THROW(ranks.group(twice), ContractError);
  });
}

}  // namespace foreshard::comm::testing
