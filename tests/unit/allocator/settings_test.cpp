#include "sim/allocator/settings.hpp"

#include <gtest/gtest.h>
#include <bit>

#include "base/error.hpp"
#include "sim/allocator/rounding.hpp"

namespace foreshard::sim::allocator {
namespace {

TEST(AllocatorSettings, AreReadFromTheVariablesText) {
  const Settings settings = parse_settings(
      "backend:native, max_split_size_mb:128,max_non_split_rounding_mb:32,expandable_segments:True,"
      "garbage_collection_threshold:0.8,per_process_memory_fraction:0.5,pinned_num_register_threads:8");
  EXPECT_EQ(settings.max_split_bytes, 128 * mib);
  EXPECT_EQ(settings.max_unsplit_excess_bytes, 32 * mib);
  EXPECT_TRUE(settings.expandable_segments);
  EXPECT_EQ(settings.garbage_collection_threshold, 0.8);
  EXPECT_EQ(settings.memory_fraction, 0.5);
  EXPECT_TRUE(settings.collects_garbage());
}

TEST(AllocatorSettings, OfAnEmptyTextAreTheDefaults) {
  const Settings settings = parse_settings("");
  EXPECT_EQ(settings.max_split_bytes, Settings::unlimited);
  EXPECT_EQ(settings.large_segment_bytes, 20 * mib);
  EXPECT_FALSE(settings.expandable_segments);
  EXPECT_FALSE(settings.collects_garbage());
}

/// The values of pytorch/pytorch's own test of its parser (AllocatorConfigTest).
TEST(AllocatorSettings, IntervalsOfDivisionsReachDownFromTheFirstAndUpFromTheLast) {
  const Settings settings = parse_settings("roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1]");
  const auto of = [&](Bytes size_mib) {
    return settings.divisions[std::size_t(std::bit_width(std::uint64_t(size_mib))) - 1];
  };
  EXPECT_EQ(of(1), 8);
  EXPECT_EQ(of(32), 8);
  EXPECT_EQ(of(64), 8);
  EXPECT_EQ(of(128), 2);
  EXPECT_EQ(of(256), 4);
  EXPECT_EQ(of(512), 2);
  EXPECT_EQ(of(1024), 4);
  EXPECT_EQ(of(2048), 1);
  EXPECT_EQ(of(32768), 1);
}

TEST(AllocatorSettings, NameWhatIsWrongWithThem) {
  const auto message_of = [](const char* text) -> std::string {
    try {
      parse_settings(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message_of("max_split_size_mb:10").find("max_split_size_mb: 10 is not at least 20"), std::string::npos);
  EXPECT_NE(message_of("max_split_size_mb:many").find("many is not a number"), std::string::npos);
  EXPECT_NE(message_of("max_split_size_mb").find("nothing is not the expected \":\""), std::string::npos);
  EXPECT_NE(message_of("expandable_segments:yes").find("yes is not True or False"), std::string::npos);
  EXPECT_NE(message_of("garbage_collection_threshold:1.0").find("(0, 1)"), std::string::npos);
  EXPECT_NE(message_of("roundup_power2_divisions:3").find("power of two"), std::string::npos);
  EXPECT_NE(message_of("roundup_power2_divisions:[64:8").find("expected \",\""), std::string::npos);
  EXPECT_NE(message_of("backend:cudaMallocAsync").find("native"), std::string::npos);
  EXPECT_NE(message_of("max_split_sizemb:3").find("a known option"), std::string::npos);
  EXPECT_NE(message_of("max_split_size_mb:20,large_segment_size_mb:30").find("large_segment_size_mb"),
            std::string::npos);
}

TEST(AllocatorRounding, IsToMultiplesOf512) {
  const Settings settings;
  EXPECT_EQ(rounded_size(1, settings), 512);
  EXPECT_EQ(rounded_size(512, settings), 512);
  EXPECT_EQ(rounded_size(513, settings), 1024);
  EXPECT_EQ(rounded_size(mib + 1, settings), mib + 512);
}

TEST(AllocatorRounding, TakesStepsBetweenPowersOfTwo) {
  const Settings settings = parse_settings("roundup_power2_divisions:4");
  EXPECT_EQ(rounded_size(2048, settings), 2048) << "512·4 and less: multiples of 512";
  EXPECT_EQ(rounded_size(2049, settings), 2560) << "steps of 2048/4";
  EXPECT_EQ(rounded_size(3000, settings), 3072);
  EXPECT_EQ(rounded_size(4096, settings), 4096);
  EXPECT_EQ(rounded_size(4097, settings), 5120);
  EXPECT_EQ(rounded_size(9 * mib, settings), 10 * mib);
  EXPECT_EQ(rounded_size(15 * mib, settings), 16 * mib);
}

TEST(AllocatorRounding, DividesOnlyTheIntervalsThatAreNamed) {
  const Settings settings = parse_settings("roundup_power2_divisions:[8:0,16:2,>:0]");
  EXPECT_EQ(rounded_size(9 * mib, settings), 9 * mib);
  EXPECT_EQ(rounded_size(17 * mib, settings), 24 * mib);
  EXPECT_EQ(rounded_size(33 * mib, settings), 33 * mib);
}

TEST(AllocatorRounding, OfSegmentsGoesByTheRoundedSize) {
  const Settings settings;
  EXPECT_EQ(segment_size(512, settings), 2 * mib);
  EXPECT_EQ(segment_size(mib, settings), 2 * mib);
  EXPECT_EQ(segment_size(mib + 512, settings), 20 * mib);
  EXPECT_EQ(segment_size(10 * mib - 512, settings), 20 * mib);
  EXPECT_EQ(segment_size(10 * mib, settings), 10 * mib);
  EXPECT_EQ(segment_size(11 * mib, settings), 12 * mib);
}

}  // namespace
}  // namespace foreshard::sim::allocator
