#include "comm/members.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/hash.hpp"

namespace foreshard::comm {

namespace {

std::uint64_t hash_of(std::span<const int> members) {
  Hash hash;
  for (const int member : members) hash.add(member);
  return hash.add(members.size()).value();
}

bool different_ranks(std::span<const int> members, int size) {
  std::vector<int> sorted(members.begin(), members.end());
  std::sort(sorted.begin(), sorted.end());
  return !sorted.empty() && sorted.front() >= 0 && sorted.back() < size &&
         std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

}  // namespace

int agree_on_members(Communicator& ranks, std::span<const int> members) {
  FORESHARD_EXPECT(
      different_ranks(members, ranks.size()),
      fmt::format("a group needs different ranks below {}, got [{}]", ranks.size(), fmt::join(members, ", ")));
  const auto own = std::find(members.begin(), members.end(), ranks.rank());
  FORESHARD_EXPECT(own != members.end(),
                   fmt::format("rank {} is not in its own group [{}]", ranks.rank(), fmt::join(members, ", ")));
  const std::uint64_t hash = hash_of(members);
  const std::vector<std::uint64_t> hashes = ranks.all_gather_u64(hash);
  for (const int member : members) {
    FORESHARD_EXPECT(hashes[member] == hash, fmt::format("ranks {} and {} name different members for their group [{}]",
                                                         ranks.rank(), member, fmt::join(members, ", ")));
  }
  return static_cast<int>(own - members.begin());
}

}  // namespace foreshard::comm
