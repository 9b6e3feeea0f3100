#include "plan/query.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tiny.hpp"

namespace foreshard::plan {
namespace {

/// The longest run of 64-byte lines that no persistent buffer touches, line by line.
std::int64_t longest_free_lines(const Plan& plan) {
  std::vector<bool> taken(static_cast<std::size_t>(plan.arena_bytes / 64));
  for (const Buffer& buffer : plan.buffers)
    for (std::int64_t line = 0; buffer.persistent && line < buffer.size_bytes / 64; ++line)
      taken[static_cast<std::size_t>(buffer.offset_bytes / 64 + line)] = true;
  std::int64_t longest = 0, run = 0;
  for (const bool line : taken) longest = std::max(longest, run = line ? 0 : run + 1);
  return longest;
}

TEST(LongestTransientRange, HoldsNoPersistentBufferAndNoLongerOneExists) {
  for (const int shard_degree : {1, 2, 8}) {
    const Plan plan = tiny_plan({}, shard_degree);
    const ArenaRange range = longest_transient_range(plan);
    EXPECT_EQ(range.size_bytes, longest_free_lines(plan) * 64);
    EXPECT_GE(range.offset_bytes, 0);
    EXPECT_LE(range.offset_bytes + range.size_bytes, plan.arena_bytes);
    for (const Buffer& buffer : plan.buffers) {
      if (!buffer.persistent) continue;
      EXPECT_TRUE(buffer.offset_bytes + buffer.size_bytes <= range.offset_bytes ||
                  buffer.offset_bytes >= range.offset_bytes + range.size_bytes);
    }
  }
}

}  // namespace
}  // namespace foreshard::plan
