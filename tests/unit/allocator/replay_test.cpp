#include "sim/allocator/replay.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "sim/allocator/peak.hpp"

namespace foreshard::sim::allocator {
namespace {

class Lists : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  EventList list(const std::string& rows) {
    std::ofstream(path_) << rows;
    return read_events(path_.string());
  }
  std::string message_of(const std::string& rows) {
    try {
      list(rows);
    } catch (const InputError& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_input);
      return error.what();
    }
    return "";
  }
  std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                ("events_" + std::to_string(testing::UnitTest::GetInstance()->random_seed()) + "_" +
                                 testing::UnitTest::GetInstance()->current_test_info()->name() + ".csv");
};

constexpr Bytes units = 40 * mib;

ReplayOptions free_of_charge() {
  ReplayOptions options;
  options.cost = {0, 0, 0, 0, 0, 0, 0};
  return options;
}

Bytes reserved_by(const EventList& events) {
  Replay replay(events, free_of_charge());
  replay.run();
  return replay.allocator().statistics().reserved.peak;
}

/// Two units' forward, with gathered parameters recorded on the compute stream; then a backward temporary.
const char* const two_units =
    "event,block,bytes,stream,time_ns,until_ns,class,unit\n"
    "phase,,,,0,,forward,\n"
    "allocate,p,41943040,0,0,,parameters,\n"
    "allocate,g0,41943040,1,100,,gathered,0\n"
    "allocate,a0,83886080,0,200,,activations,0\n"
    "record_stream,g0,,0,250,900,,\n"
    "free,g0,,,300,,,\n"
    "allocate,g1,41943040,1,400,,gathered,1\n"
    "allocate,a1,62914560,0,500,,activations,1\n"
    "record_stream,g1,,0,550,,,\n"
    "free,g1,,,600,,,\n"
    "phase,,,,1000,,backward,\n"
    "sync,,,0,1500,,,\n"
    "allocate,t,1048577,0,2000,,workspace,\n"
    "free,t,,,2100,,,\n"
    "free,a1,,,2200,,,\n"
    "free,a0,,,2300,,,\n";

TEST_F(Lists, AreReplayedWithLabelsStreamsAndTimes) {
  const EventList events = list(two_units);
  ASSERT_EQ(events.events.size(), 16u);
  EXPECT_EQ(events.phases, (std::vector<std::string>{"forward", "backward"}));
  EXPECT_EQ(class_of(events.events[3].label), MemoryClass::activations);
  EXPECT_EQ(unit_of(events.events[3].label), 0);
  EXPECT_EQ(unit_of(events.events[1].label), no_unit);

  Replay replay(events, free_of_charge());
  for (int i = 0; i < 9; ++i) replay.step();
  const Statistics& now = replay.allocator().statistics();
  EXPECT_EQ(now.allocated.current, 40 * mib + 80 * mib + 40 * mib + 60 * mib) << "without the first unit's gather";
  EXPECT_EQ(now.active.current, now.allocated.current + 40 * mib) << "in use until 900";
  replay.run();
  EXPECT_FALSE(replay.failure());
  EXPECT_EQ(now.reserved.peak, 40 * mib + 2 * 40 * mib + 80 * mib + 60 * mib + 20 * mib);
  EXPECT_EQ(now.allocated.current, 40 * mib);
  EXPECT_EQ(replay.live().size(), 1u);
}

TEST_F(Lists, AStreamWithoutTimesIsDoneWhenItIsSynchronised) {
  const std::string head = "event,block,bytes,stream\nallocate,1,41943040,1\nrecord_stream,1,,0\nfree,1,,\n";
  const auto reserved = [&](const std::string& rows) { return reserved_by(list(head + rows)); };
  EXPECT_EQ(reserved("allocate,2,41943040,1\n"), 2 * units);
  EXPECT_EQ(reserved("sync,,,0\nallocate,2,41943040,1\n"), units);
  EXPECT_EQ(reserved("sync,,,2\nallocate,2,41943040,1\n"), 2 * units) << "another stream";
}

TEST_F(Lists, ABlocksOwnStreamIsNothingToWaitFor) {
  const EventList events =
      list("event,block,bytes,stream\nallocate,1,41943040,1\nrecord_stream,1,,1\nfree,1,,\nallocate,2,41943040,1\n");
  EXPECT_EQ(reserved_by(events), units);
}

TEST_F(Lists, WhatFollowsAStallIsLaterByAsMuch) {
  const EventList events = list(
      "event,block,bytes,stream,time_ns,until_ns\n"
      "allocate,1,41943040,0,0,\n"
      "free,1,,,100,5000\n"
      "allocate,2,62914560,0,1000,\n"
      "free,2,,,1500,\n");
  ReplayOptions options = free_of_charge();
  options.device_bytes = 90 * mib;
  Replay replay(events, options);
  replay.run();
  EXPECT_EQ(replay.stalled(), 4000);
  EXPECT_EQ(replay.sample().at, 5500);
}

TEST_F(Lists, TimelinesKeepPeaksWhenTheyAreMadeCoarser) {
  const EventList events = list(two_units);
  const auto fine = timeline_of(events, free_of_charge());
  EXPECT_EQ(fine.size(), 12u) << "eleven allocations and frees, and the first phase";
  const auto coarse = coarsened(fine, 2);
  ASSERT_EQ(coarse.size(), 2u);
  EXPECT_EQ(coarse[0].active, 260 * mib);
  EXPECT_EQ(coarse[1].reserved, 280 * mib);
  EXPECT_EQ(coarsened(fine, 100).size(), fine.size());
}

TEST_F(Lists, ThePeakIsExplained) {
  const EventList events = list(two_units);
  const PeakReport report = explain_peak(events, free_of_charge());
  EXPECT_FALSE(report.out_of_memory);
  EXPECT_EQ(report.moment.phase, "forward");
  EXPECT_EQ(report.moment.bytes, 60 * mib);
  EXPECT_EQ(report.largest_request.bytes, 80 * mib);
  EXPECT_EQ(report.largest_request.phase, "forward");
  EXPECT_EQ(unit_of(report.largest_request.label), 0);
  EXPECT_EQ(report.reserved, 260 * mib);
  EXPECT_EQ(report.reserved_peak, 280 * mib) << "a temporary of the backward pass takes one more segment";
  EXPECT_EQ(report.by_class[std::size_t(MemoryClass::activations)], 140 * mib);
  EXPECT_EQ(report.by_class[std::size_t(MemoryClass::parameters)], 40 * mib);
  EXPECT_EQ(report.by_class[std::size_t(MemoryClass::gathered)], 40 * mib);
  EXPECT_EQ(report.waiting, 40 * mib) << "the first gather, in use until 900";
  EXPECT_EQ(report.cached, 0);
  EXPECT_EQ(report.allocated + report.waiting + report.cached + report.inactive_split, report.reserved);
  ASSERT_FALSE(report.holdings.empty());
  EXPECT_EQ(report.holdings[0].bytes, 80 * mib);
  EXPECT_NE(report.text().find("activations"), std::string::npos);
  EXPECT_EQ(to_json(report)["by_class"]["activations"], 140 * mib);
}

/// Three gathers at once, all still in use by the compute stream: the hold is what costs.
TEST_F(Lists, KnobsSayWhatTheySave) {
  std::string rows = "event,block,bytes,stream,time_ns,until_ns,class,unit\n";
  for (int unit = 0; unit < 4; ++unit) {
    const std::string name = "g" + std::to_string(unit), at = std::to_string(unit * 100);
    rows += "allocate," + name + ",104857600,1," + at + ",,gathered," + std::to_string(unit) + "\n";
    rows += "free," + name + ",,," + at + ",100000,,\n";
    rows += "allocate,a" + std::to_string(unit) + ",20971520,0," + at + ",,activations," + std::to_string(unit) + "\n";
  }
  const PeakReport report = explain_peak(list(rows), free_of_charge());
  EXPECT_EQ(report.waiting, 400 * mib);
  ASSERT_EQ(report.knobs.size(), 2u);
  EXPECT_EQ(report.knobs[0].name, "limit_all_gathers, or FSDP2");
  EXPECT_EQ(report.knobs[0].saves, 300 * mib);
  EXPECT_EQ(report.knobs[1].name, "recompute activations (full)");
  EXPECT_EQ(report.knobs[1].saves, 60 * mib) << "all units but one";
}

/// 60 MiB free in two pieces, 70 wanted, 60 left on the device. Whole pages of an expandable segment are no such loss.
TEST_F(Lists, ExpandableSegmentsAreTriedByReplay) {
  const EventList events = list(
      "event,block,bytes,stream\n"
      "allocate,1,73400320,0\nallocate,2,73400320,0\nfree,1,,\nfree,2,,\n"
      "allocate,3,41943040,0\nallocate,4,41943040,0\nallocate,5,62914560,0\n");
  const PeakReport report = explain_peak(events, free_of_charge());
  EXPECT_EQ(report.reserved_peak, 200 * mib);
  ASSERT_EQ(report.knobs.size(), 1u);
  EXPECT_EQ(report.knobs[0].name, "expandable_segments:True");
  EXPECT_TRUE(report.knobs[0].exact);
  EXPECT_EQ(report.knobs[0].saves, 200 * mib - 140 * mib) << "seven pages hold all three";
}

TEST_F(Lists, OutOfMemoryIsExplainedWhereItHappens) {
  const EventList events = list(
      "event,block,bytes,stream,time_ns,until_ns,class,unit\n"
      "allocate,1,62914560,0,0,,optimizer,\n"
      "allocate,2,52428800,0,10,,gathered,3\n"
      "allocate,3,1048576,0,20,,other,\n");
  ReplayOptions options;
  options.device_bytes = 100 * mib;
  const PeakReport report = explain_peak(events, options);
  EXPECT_TRUE(report.out_of_memory);
  EXPECT_EQ(report.moment.event, 1u);
  EXPECT_EQ(report.moment.bytes, 50 * mib);
  EXPECT_EQ(unit_of(report.moment.label), 3);
  EXPECT_EQ(report.by_class[std::size_t(MemoryClass::optimizer)], 60 * mib);
  EXPECT_NE(report.text().find("out of memory"), std::string::npos);
}

TEST_F(Lists, NameWhatIsWrongInThem) {
  EXPECT_NE(message_of("event,block,bytes\n").find("stream"), std::string::npos);
  EXPECT_NE(message_of("event,block,bytes,stream\nalocate,1,5,0\n").find("Did you mean `allocate`"), std::string::npos);
  EXPECT_NE(message_of("event,block,bytes,stream\nallocate,1,many,0\n").find("row 2: bytes is \"many\""),
            std::string::npos);
  EXPECT_NE(message_of("event,block,bytes,stream\nfree,1,,\n").find("an earlier row allocates"), std::string::npos);
  EXPECT_NE(message_of("event,block,bytes,stream\nallocate,1,5,0\nallocate,1,5,0\n").find("row 3"), std::string::npos);
  EXPECT_NE(message_of("event,block,bytes,stream\nallocate,1,5,0\nfree,1,,\nfree,1,,\n").find("row 4"),
            std::string::npos);
}

TEST(Labels, KeepClassAndUnit) {
  for (int kind = 0; kind < int(memory_class_names.size()); ++kind)
    for (const int unit : {-1, 0, 1, 95, 100'000}) {
      const Label label = label_of(MemoryClass(kind), unit);
      EXPECT_EQ(class_of(label), MemoryClass(kind));
      EXPECT_EQ(unit_of(label), unit);
    }
  EXPECT_EQ(class_of(Label::none), MemoryClass::other);
  EXPECT_EQ(unit_of(Label::none), no_unit);
  EXPECT_EQ(text_of(label_of(MemoryClass::gathered, 4)), "gathered of unit 4");
}

}  // namespace
}  // namespace foreshard::sim::allocator
