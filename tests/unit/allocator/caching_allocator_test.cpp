// Every rule by itself; the numbers follow from the rules, not from the code.
#include "sim/allocator/caching_allocator.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace foreshard::sim::allocator {
namespace {

constexpr DriverCost free_of_charge{0, 0, 0, 0, 0, 0, 0};

CachingAllocator of(const char* settings, Bytes device = gib) {
  return CachingAllocator(parse_settings(settings), device, 0, free_of_charge);
}

TEST(CachingAllocator, NothingAskedIsNothingGiven) {
  CachingAllocator allocator = of("");
  const Allocation nothing = allocator.allocate(0, 0, 5);
  EXPECT_EQ(nothing.block, nullptr);
  EXPECT_FALSE(nothing.out_of_memory);
  EXPECT_EQ(nothing.host_at, 5);
  allocator.free(nullptr);
  EXPECT_EQ(allocator.statistics(), Statistics{});
}

TEST(CachingAllocator, SmallRequestsShareSegmentsOf2MiB) {
  CachingAllocator allocator = of("");
  for (int i = 0; i < 4; ++i) allocator.allocate(512 * 1024, 0, 0);
  EXPECT_EQ(allocator.statistics().reserved.current, 2 * mib);
  EXPECT_EQ(allocator.statistics().inactive_split.current, 0);
  allocator.allocate(1, 0, 0);
  EXPECT_EQ(allocator.statistics().reserved.current, 4 * mib);
  EXPECT_EQ(allocator.statistics().allocated.current, 2 * mib + 512);
  EXPECT_EQ(allocator.statistics().requested.current, 2 * mib + 1);
  EXPECT_EQ(allocator.statistics().inactive_split.current, 2 * mib - 512);
}

TEST(CachingAllocator, AMiBIsSmallAndAByteMoreIsNot) {
  CachingAllocator allocator = of("");
  allocator.allocate(mib, 0, 0);
  EXPECT_EQ(allocator.statistics().reserved.current, 2 * mib);
  allocator.allocate(mib + 1, 0, 0);
  EXPECT_EQ(allocator.statistics().reserved.current, 22 * mib);
}

TEST(CachingAllocator, ALargeBlockIsSplitOnlyForARestOfMoreThanAMiB) {
  CachingAllocator allocator = of("");
  Block* whole = allocator.allocate(12 * mib, 0, 0).block;
  allocator.free(whole);
  EXPECT_EQ(allocator.allocate(11 * mib, 0, 0).block->size, 12 * mib) << "a rest of 1 MiB stays with it";
  EXPECT_EQ(allocator.statistics().allocated.current, 12 * mib);
  EXPECT_EQ(allocator.statistics().requested.current, 11 * mib);
  allocator.free(whole);
  EXPECT_EQ(allocator.allocate(11 * mib - 512, 0, 0).block->size, 11 * mib - 512);
  EXPECT_EQ(allocator.statistics().inactive_split.current, mib + 512);
  EXPECT_EQ(allocator.statistics().reserved.peak, 12 * mib);
}

TEST(CachingAllocator, TakesTheSmallestBlockThatFits) {
  CachingAllocator allocator = of("");
  Block* blocks[] = {allocator.allocate(40 * mib, 0, 0).block, allocator.allocate(30 * mib, 0, 0).block,
                     allocator.allocate(50 * mib, 0, 0).block};
  const Bytes addresses[] = {blocks[0]->address, blocks[1]->address, blocks[2]->address};
  for (Block* block : blocks) allocator.free(block);
  EXPECT_EQ(allocator.allocate(31 * mib, 0, 0).block->address, addresses[0]);
  EXPECT_EQ(allocator.allocate(30 * mib, 0, 0).block->address, addresses[1]);
  EXPECT_EQ(allocator.allocate(30 * mib, 0, 0).block->address, addresses[2]);
}

TEST(CachingAllocator, OfEqualBlocksTakesTheLowest) {
  CachingAllocator allocator = of("");
  Block* first = allocator.allocate(30 * mib, 0, 0).block;
  Block* second = allocator.allocate(30 * mib, 0, 0).block;
  const Bytes address = first->address;
  allocator.free(second), allocator.free(first);
  EXPECT_EQ(allocator.allocate(30 * mib, 0, 0).block->address, address);
}

TEST(CachingAllocator, NeverGivesABlockOfAnotherStreamOrPool) {
  CachingAllocator allocator = of("");
  allocator.free(allocator.allocate(20 * mib, 0, 0).block);
  allocator.allocate(20 * mib, 1, 0);
  EXPECT_EQ(allocator.statistics().reserved.current, 40 * mib);
  allocator.allocate(512, 0, 0);
  EXPECT_EQ(allocator.statistics().reserved.current, 42 * mib);
}

TEST(CachingAllocator, FreeNeighboursMergeOnBothSides) {
  CachingAllocator allocator = of("");
  Block* parts[4];
  for (Block*& part : parts) part = allocator.allocate(5 * mib, 0, 0).block;
  EXPECT_EQ(allocator.statistics().reserved.current, 20 * mib);
  allocator.free(parts[0]), allocator.free(parts[2]);
  EXPECT_EQ(allocator.statistics().inactive_split.current, 10 * mib);
  allocator.allocate(9 * mib, 0, 0);
  EXPECT_EQ(allocator.statistics().reserved.current, 40 * mib) << "no two of the free blocks are neighbours";
  EXPECT_EQ(allocator.statistics().inactive_split.current, 10 * mib + 11 * mib);
  allocator.free(parts[1]);
  EXPECT_EQ(allocator.statistics().inactive_split.current, 15 * mib + 11 * mib);
  allocator.allocate(15 * mib, 0, 0);
  EXPECT_EQ(allocator.statistics().reserved.current, 40 * mib);
  allocator.free(parts[3]);
}

TEST(CachingAllocator, BlocksOfOtherStreamsStayActiveUntilAnAllocationFindsThemDone) {
  CachingAllocator allocator = of("");
  Block* block = allocator.allocate(30 * mib, 0, 0).block;
  allocator.free(block, 100);
  EXPECT_EQ(allocator.statistics().allocated.current, 0);
  EXPECT_EQ(allocator.statistics().active.current, 30 * mib);
  allocator.allocate(30 * mib, 0, 99);
  EXPECT_EQ(allocator.statistics().reserved.current, 60 * mib) << "not yet";
  EXPECT_EQ(allocator.statistics().active.current, 60 * mib);
  allocator.allocate(30 * mib, 0, 100);
  EXPECT_EQ(allocator.statistics().reserved.current, 60 * mib) << "taken back and used";
  EXPECT_EQ(allocator.statistics().active.current, 60 * mib);
  EXPECT_EQ(allocator.statistics().active.peak, 60 * mib);
}

TEST(CachingAllocator, DoesNotMergeWithABlockThatWaits) {
  CachingAllocator allocator = of("");
  Block* parts[4];
  for (Block*& part : parts) part = allocator.allocate(5 * mib, 0, 0).block;
  allocator.free(parts[0], 1000), allocator.free(parts[1]);
  allocator.allocate(9 * mib, 0, 999);
  EXPECT_EQ(allocator.statistics().reserved.current, 40 * mib);
  allocator.poll(1000);
  EXPECT_EQ(allocator.allocate(10 * mib, 0, 1000).block->address, 0);
  EXPECT_EQ(allocator.statistics().reserved.current, 40 * mib);
}

TEST(CachingAllocator, RetriesAfterWaitingForEventsAndReleasingWholeSegments) {
  CachingAllocator allocator(Settings{}, 100 * mib, 10 * mib, DriverCost{1000, 0, 10, 0, 0, 0, 0});
  Block* waits = allocator.allocate(40 * mib, 0, 0).block;
  Block* cached = allocator.allocate(30 * mib, 1, 0).block;
  Block* split = allocator.allocate(5 * mib, 0, 0).block;  // of 20 MiB, which stay
  EXPECT_EQ(allocator.device_free(), 0);
  allocator.free(cached);
  allocator.free(waits, 700'000);
  const Allocation got = allocator.allocate(60 * mib, 1, 5000, 900'000);
  ASSERT_FALSE(got.out_of_memory);
  EXPECT_EQ(got.host_at, 900'000 + 2 * 10 + 1000) << "cudaFree waits for the device, twice nothing more";
  EXPECT_EQ(allocator.statistics().retries, 1);
  EXPECT_EQ(allocator.statistics().syncs, 1);
  EXPECT_EQ(allocator.statistics().device_frees, 2);
  EXPECT_EQ(allocator.statistics().device_allocs, 4);
  EXPECT_EQ(allocator.statistics().reserved.current, 80 * mib);
  EXPECT_EQ(allocator.statistics().reserved.peak, 90 * mib);
  allocator.free(split);
}

TEST(CachingAllocator, ARetryWaitsForTheLatestEvent) {
  CachingAllocator allocator(Settings{}, 60 * mib, 0, free_of_charge);
  allocator.free(allocator.allocate(30 * mib, 0, 0).block, 8000);
  allocator.free(allocator.allocate(30 * mib, 0, 0).block, 3000);
  EXPECT_EQ(allocator.allocate(40 * mib, 0, 10).host_at, 8000);
}

TEST(CachingAllocator, OutOfMemoryIsAResultThatSaysWhatThereWas) {
  CachingAllocator allocator = of("", 100 * mib);
  allocator.set_outside(20 * mib);
  allocator.allocate(41 * mib, 0, 0);
  Block* part = allocator.allocate(8 * mib, 1, 0).block;
  const Allocation got = allocator.allocate(33 * mib, 1, 7);
  EXPECT_TRUE(got.out_of_memory);
  EXPECT_EQ(got.block, nullptr);
  EXPECT_EQ(allocator.statistics().ooms, 1);
  EXPECT_EQ(allocator.statistics().retries, 1);
  const OutOfMemory& failure = allocator.failure();
  EXPECT_EQ(failure.requested, 33 * mib);
  EXPECT_EQ(failure.segment, 34 * mib);
  EXPECT_EQ(failure.device_free, 18 * mib);
  EXPECT_EQ(failure.outside, 20 * mib);
  EXPECT_EQ(failure.allocated, 50 * mib) << "41 MiB keep the rest of their 42";
  EXPECT_EQ(failure.reserved, 62 * mib);
  EXPECT_EQ(failure.large.largest, 12 * mib);
  EXPECT_EQ(failure.largest_of_stream, 12 * mib);
  EXPECT_FALSE(failure.is_fragmentation()) << "30 MiB in all";
  EXPECT_NE(failure.text().find("33.0 MiB asked on stream 1"), std::string::npos) << failure.text();
  EXPECT_FALSE(allocator.allocate(12 * mib, 1, 8).out_of_memory) << "it goes on";
  allocator.free(part);
}

TEST(CachingAllocator, SaysWhenFragmentationIsToBlame) {
  CachingAllocator allocator = of("", 40 * mib);
  allocator.allocate(5 * mib, 0, 0);
  allocator.allocate(5 * mib, 1, 0);
  EXPECT_TRUE(allocator.allocate(16 * mib, 0, 0).out_of_memory);
  EXPECT_TRUE(allocator.failure().is_fragmentation());
}

TEST(CachingAllocator, BlocksOfTheSplitLimitServeOnlyLargeRequests) {
  CachingAllocator allocator = of("max_split_size_mb:32");
  Block* block = allocator.allocate(100 * mib, 0, 0).block;
  const Bytes address = block->address;
  allocator.free(block);
  EXPECT_NE(allocator.allocate(31 * mib, 0, 0).block->address, address) << "a block of 100 MiB is not split for it";
  EXPECT_NE(allocator.allocate(80 * mib, 0, 0).block->address, address) << "20 MiB too much";
  Block* fits = allocator.allocate(80 * mib + 512, 0, 0).block;
  EXPECT_EQ(fits->address, address);
  EXPECT_EQ(fits->size, 100 * mib) << "whole";
}

/// 20 MiB are not below the limit: once free, the segment of a small request serves none any more.
TEST(CachingAllocator, TheLowestSplitLimitMakesLargeSegmentsOversize) {
  CachingAllocator allocator = of("max_split_size_mb:20");
  allocator.free(allocator.allocate(2 * mib, 0, 0).block);
  allocator.allocate(2 * mib, 0, 0);
  EXPECT_EQ(allocator.statistics().reserved.current, 40 * mib);
}

TEST(CachingAllocator, OversizeBlocksAreReleasedBeforeARetry) {
  CachingAllocator allocator = of("max_split_size_mb:32", 200 * mib);
  Block* blocks[] = {allocator.allocate(40 * mib, 0, 0).block, allocator.allocate(60 * mib, 0, 0).block,
                     allocator.allocate(80 * mib, 0, 0).block};
  for (Block* block : blocks) allocator.free(block);
  allocator.allocate(30 * mib, 0, 0);
  EXPECT_EQ(allocator.statistics().reserved.current, 60 * mib + 80 * mib + 30 * mib) << "the smallest that is enough";
  EXPECT_EQ(allocator.statistics().retries, 0);
  allocator.allocate(130 * mib, 0, 0);
  EXPECT_EQ(allocator.statistics().reserved.current, 30 * mib + 130 * mib) << "80, then 60";
  EXPECT_EQ(allocator.statistics().device_frees, 3);
  EXPECT_EQ(allocator.statistics().retries, 0);
}

TEST(CachingAllocator, StaysWithinTheMemoryFraction) {
  CachingAllocator allocator = of("per_process_memory_fraction:0.5", 100 * mib);
  EXPECT_FALSE(allocator.allocate(50 * mib, 0, 0).out_of_memory);
  EXPECT_TRUE(allocator.allocate(512, 0, 0).out_of_memory);
  EXPECT_EQ(allocator.failure().device_free, 50 * mib);
  EXPECT_EQ(allocator.failure().allowed, 50 * mib);
}

/// Ages in searches of the large pool: with two segments of 20 and 10 and a third just freed, the average lies below
/// the oldest alone.
TEST(CachingAllocator, CollectsTheOldestSegmentsFirst) {
  CachingAllocator allocator = of("garbage_collection_threshold:0.5,per_process_memory_fraction:0.999", 202 * mib);
  Block* old = allocator.allocate(40 * mib, 0, 0).block;
  Block* young = allocator.allocate(40 * mib, 1, 0).block;
  allocator.free(old);
  for (int i = 0; i < 10; ++i) allocator.free(allocator.allocate(30 * mib, 2, 0).block);
  allocator.free(young);
  EXPECT_EQ(allocator.statistics().reserved.current, 110 * mib);
  allocator.allocate(50 * mib, 2, 0);
  EXPECT_EQ(allocator.statistics().reserved.current, 70 * mib + 50 * mib) << "the oldest, 40 MiB, was enough";
  EXPECT_EQ(allocator.statistics().syncs, 0);
}

TEST(CachingAllocator, CollectsNothingBelowTheThreshold) {
  CachingAllocator allocator = of("garbage_collection_threshold:0.5,per_process_memory_fraction:0.999", 202 * mib);
  allocator.free(allocator.allocate(100 * mib, 0, 0).block);
  allocator.allocate(10 * mib, 1, 0);
  EXPECT_EQ(allocator.statistics().device_frees, 0);
}

TEST(CachingAllocator, EmptyCacheGivesBackWhatIsWholeAndFree) {
  CachingAllocator allocator(Settings{}, gib, 0, DriverCost{0, 0, 10, 0, 0, 0, 0});
  allocator.free(allocator.allocate(40 * mib, 0, 0).block);
  allocator.free(allocator.allocate(50 * mib, 0, 0).block, 600);
  allocator.allocate(mib, 0, 0);
  EXPECT_EQ(allocator.empty_cache(100), 600 + 2 * 10);
  EXPECT_EQ(allocator.statistics().reserved.current, 2 * mib);
  EXPECT_EQ(allocator.statistics().active.current, mib);
  EXPECT_EQ(allocator.statistics().syncs, 1);
  EXPECT_EQ(allocator.statistics().retries, 0);
}

TEST(CachingAllocator, PeaksStartAgainFromNow) {
  CachingAllocator allocator = of("");
  Block* kept = allocator.allocate(40 * mib, 0, 0).block;
  allocator.free(allocator.allocate(50 * mib, 0, 0).block);
  EXPECT_EQ(allocator.statistics().allocated.peak, 90 * mib);
  EXPECT_EQ(allocator.statistics().allocated.total, 90 * mib);
  allocator.reset_peaks();
  EXPECT_EQ(allocator.statistics().allocated.peak, 40 * mib);
  EXPECT_EQ(allocator.statistics().reserved.peak, 90 * mib);
  allocator.free(kept);
}

TEST(CachingAllocator, ABlockIsFreedOnce) {
  CachingAllocator allocator = of("");
  Block* block = allocator.allocate(40 * mib, 0, 0).block;
  allocator.free(block);
  EXPECT_THROW(allocator.free(block), ContractError);
  EXPECT_THROW(allocator.free(block, 5), ContractError);
}

TEST(CachingAllocator, BlocksKeepTheirLabels) {
  CachingAllocator allocator = of("");
  EXPECT_EQ(allocator.allocate(40 * mib, 0, 0, 0, Label{7}).block->label, Label{7});
}

TEST(ExpandableSegments, MapWholePagesAtTheEnd) {
  CachingAllocator allocator = of("expandable_segments:True");
  allocator.allocate(mib, 0, 0);
  EXPECT_EQ(allocator.statistics().reserved.current, 2 * mib);
  Block* large = allocator.allocate(25 * mib, 0, 0).block;
  EXPECT_EQ(allocator.statistics().reserved.current, 42 * mib);
  EXPECT_EQ(allocator.allocate(10 * mib, 0, 0).block->address, large->address + 25 * mib);
  EXPECT_EQ(allocator.statistics().reserved.current, 42 * mib);
  EXPECT_EQ(allocator.allocate(6 * mib, 0, 0).block->address, large->address + 35 * mib) << "5 MiB and a page more";
  EXPECT_EQ(allocator.statistics().reserved.current, 62 * mib);
  EXPECT_EQ(allocator.statistics().device_allocs, 3);
  EXPECT_EQ(allocator.statistics().inactive_split.current, 0) << "not counted";
}

TEST(ExpandableSegments, SplitToTheLast512Bytes) {
  CachingAllocator allocator = of("expandable_segments:True");
  EXPECT_EQ(allocator.allocate(20 * mib - 512, 0, 0).block->size, 20 * mib - 512);
  allocator.allocate(1, 0, 0);
  EXPECT_EQ(allocator.statistics().reserved.current, 22 * mib) << "the small one is of another pool";
}

/// A hole of 30 MiB in front, the end of 10 MiB: 12 MiB fit both. The end could grow to almost 9/8 of the device.
TEST(ExpandableSegments, AreSpareWithTheirEnd) {
  CachingAllocator allocator = of("expandable_segments:True");
  Block* hole = allocator.allocate(30 * mib, 0, 0).block;
  allocator.allocate(20 * mib, 0, 0);
  const Bytes address = hole->address;
  allocator.free(hole);
  EXPECT_EQ(allocator.allocate(9 * mib, 0, 0).block->address, address);
  EXPECT_EQ(allocator.statistics().reserved.current, 60 * mib);
}

TEST(ExpandableSegments, UnmapFreePagesWhenMemoryIsOut) {
  CachingAllocator allocator(parse_settings("expandable_segments:True"), 100 * mib, 0, DriverCost{0, 0, 0, 0, 5, 7, 3});
  Block* first = allocator.allocate(50 * mib, 0, 0).block;
  allocator.allocate(10 * mib, 0, 0);
  EXPECT_EQ(allocator.statistics().reserved.current, 60 * mib);
  allocator.free(first);
  const Allocation other = allocator.allocate(60 * mib, 1, 0, 900);
  ASSERT_FALSE(other.out_of_memory);
  EXPECT_EQ(other.host_at, 900 + 2 * 3 + 5 + 3 * 7) << "two pages out, three in";
  EXPECT_EQ(allocator.statistics().retries, 1);
  EXPECT_EQ(allocator.statistics().reserved.current, 20 * mib + 60 * mib);
  EXPECT_EQ(allocator.statistics().device_frees, 1);
  EXPECT_EQ(allocator.allocate(10 * mib, 0, 0).block->address, 40 * mib) << "what was left of the third page";
  EXPECT_EQ(allocator.allocate(20 * mib, 0, 0).block->address, 0) << "and the hole in front of it is mapped again";
}

/// Of two free segments of 30 MiB three requests of 11 leave 8 and 19 MiB; of one room of 60 they leave 27.
TEST(ExpandableSegments, HoldWhatFragmentationKeepsOut) {
  for (const bool expandable : {false, true}) {
    Settings settings;
    settings.expandable_segments = expandable;
    CachingAllocator allocator(settings, 140 * mib);
    Block* blocks[4];
    for (Block*& block : blocks) block = allocator.allocate(30 * mib, 0, 0).block;
    allocator.free(blocks[1]), allocator.free(blocks[2]);
    for (int i = 0; i < 3; ++i) allocator.allocate(11 * mib, 0, 0);
    EXPECT_EQ(allocator.allocate(27 * mib, 0, 0).out_of_memory, !expandable);
  }
}

}  // namespace
}  // namespace foreshard::sim::allocator
