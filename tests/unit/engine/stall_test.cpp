// Who holds up the others, from what a neighbour can see.
#include "engine/stall.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/plan/tiny.hpp"

namespace foreshard::engine {
namespace {

using plan::Lane;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr double silent_s = 1;

Sighting::LaneSighting& lane_of(Watched& rank, Lane lane) { return rank.seen.lanes[static_cast<std::size_t>(lane)]; }

/// A rank in step 7 whose compute and gather lanes have ended so many ops.
Watched rank_with(int rank, std::uint64_t computed, std::uint64_t gathered) {
  Watched watched{.quiet_s = 5, .silent_s = 0.1};
  watched.seen.rank = rank;
  watched.seen.process = 1000 + rank;
  watched.seen.step = 7;
  watched.seen.running = true;
  lane_of(watched, Lane::compute) = {.entered = computed, .ended = computed};
  lane_of(watched, Lane::gather) = {.entered = gathered, .ended = gathered};
  return watched;
}

using Positions = std::vector<std::size_t>;

TEST(LateRanks, AreThoseThatAreSilent) {
  std::vector ranks{rank_with(0, 90, 9), rank_with(1, 95, 9), rank_with(2, 80, 9)};
  ranks[1].silent_s = 4;
  EXPECT_EQ(late_ranks(ranks, silent_s), Positions{1});
}

TEST(LateRanks, AreThoseWithTheFewestOpsIfAllAreAlive) {
  EXPECT_EQ(late_ranks(std::vector{rank_with(0, 90, 9), rank_with(1, 70, 9), rank_with(2, 90, 9)}, silent_s),
            Positions{1});
  EXPECT_EQ(late_ranks(std::vector{rank_with(0, 70, 9), rank_with(1, 70, 9), rank_with(2, 90, 9)}, silent_s),
            (Positions{0, 1}));
}

TEST(LateRanks, AreNoneIfAllAreEqual) {
  EXPECT_EQ(late_ranks(std::vector{rank_with(0, 90, 9), rank_with(1, 90, 9)}, silent_s), Positions{});
}

/// The first op of `lane`, as a lane that is in it.
Sighting::LaneSighting in_first_op(const plan::Plan& plan, Lane lane) {
  const auto op = std::ranges::find(plan.ops, lane, &plan::Op::lane);
  return {.entered = 1, .ended = 0, .op = static_cast<std::uint32_t>(op - plan.ops.begin())};
}

class StallText : public testing::Test {
 protected:
  plan::Plan plan = plan::tiny_plan({});
  WatchedPlans plans = [this](std::int64_t) -> const plan::Plan& { return plan; };
};

TEST_F(StallText, NamesTheLateRankAndTheOpsOfAll) {
  std::vector ranks{rank_with(0, 9, 0), rank_with(1, 8, 1)};
  lane_of(ranks[0], Lane::gather) = in_first_op(plan, Lane::gather);
  ranks[1].silent_s = 5;
  EXPECT_THAT(stall_text(ranks, silent_s, plans, true),
              AllOf(HasSubstr("rank 1 (process 1001) is stopped or dead: no sign of life for 5.0 s\n"),
                    HasSubstr("rank 0: in step 7; "), HasSubstr("gather is in all_gather root, "),
                    HasSubstr("rank 1: in step 7; ")));
}

TEST_F(StallText, SaysWhereToLookIfNobodyHereIsLate) {
  const std::vector ranks{rank_with(0, 9, 3), rank_with(1, 9, 3)};
  EXPECT_THAT(stall_text(ranks, silent_s, plans, false), HasSubstr("other nodes"));
  EXPECT_THAT(stall_text(ranks, silent_s, plans, true), Not(HasSubstr("other nodes")));
}

TEST_F(StallText, CountsTheRanksThatItDoesNotList) {
  std::vector<Watched> ranks;
  for (int rank = 0; rank < 40; ++rank) ranks.push_back(rank_with(rank, rank == 33 ? 1 : 9, 3));
  EXPECT_THAT(stall_text(ranks, silent_s, plans, true),
              AllOf(HasSubstr("rank 33 (process 1033) is behind"), HasSubstr("rank 15: "), Not(HasSubstr("rank 16: ")),
                    HasSubstr("24 more ranks")));
}

TEST_F(StallText, SaysThatARankHasNotBegun) { EXPECT_EQ(work_text(Sighting(), plans), "before the first step"); }

}  // namespace
}  // namespace foreshard::engine
