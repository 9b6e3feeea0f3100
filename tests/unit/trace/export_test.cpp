#include "trace/export.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "tiny_run.hpp"

namespace foreshard::trace {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Export : public testing::Test {
 protected:
  Export() {
    write_tiny(folder_.file("t.h5"), 2, 3);
    trace_ = read(folder_.file("t.h5"));
  }
  json perfetto(const Selection& selection = {}) {
    export_perfetto(trace_, selection, folder_.file("t.json"), true);
    return json::parse(text_in(folder_.file("t.json")));
  }

  TemporaryFolder folder_;
  Trace trace_;
};

std::vector<json> of_phase(const json& file, const char* phase) {
  std::vector<json> found;
  for (const json& event : file["traceEvents"])
    if (event["ph"] == phase) found.push_back(event);
  return found;
}

std::int64_t ns(const json& microseconds) { return std::llround(microseconds.get<double>() * 1000); }

TEST_F(Export, PerfettoHasOneNamedTrackPerRankAndLane) {
  const json file = perfetto();
  std::set<std::tuple<int, int, std::string>> tracks;
  for (const json& event : of_phase(file, "M"))
    if (event["name"] == "thread_name")
      tracks.emplace(event["pid"].get<int>(), event["tid"].get<int>(), event["args"]["name"].get<std::string>());
  EXPECT_EQ(tracks.size(), 2u * (plan::lane_count + 1));
  EXPECT_TRUE(tracks.contains({1, static_cast<int>(plan::Lane::reduce), "reduce"}));
}

TEST_F(Export, PerfettoSlicesAreTheEventsAndNeverOverlapOnATrack) {
  const json file = perfetto();
  std::map<std::pair<int, int>, std::vector<std::pair<std::int64_t, std::int64_t>>> tracks;
  for (const json& event : of_phase(file, "X"))
    tracks[{event["pid"], event["tid"]}].emplace_back(ns(event["ts"]), ns(event["ts"]) + ns(event["dur"]));
  std::size_t slices = 0;
  for (auto& [track, spans] : tracks) {
    std::ranges::sort(spans);
    for (std::size_t i = 1; i < spans.size(); ++i) EXPECT_LE(spans[i - 1].second, spans[i].first);
    slices += spans.size();
  }
  EXPECT_EQ(slices, trace_.rows.size() + trace_.steps.size());
  const auto& compute = tracks.at({1, static_cast<int>(plan::Lane::compute)});
  EXPECT_EQ(compute.front(), std::pair(std::int64_t{101}, std::int64_t{201}))
      << "rank 1 starts 1 ns after rank 0, op 1 100 ns later";
}

TEST_F(Export, PerfettoTimesBeginAtTheFirstStepThoughItStartsBeforeItsFirstOp) {
  for (StepRow& row : trace_.steps) row.start_ns -= 700;
  const std::vector<json> slices = of_phase(perfetto(), "X");
  const auto first = std::ranges::min_element(slices, {}, [](const json& slice) { return slice["ts"].get<double>(); });
  EXPECT_EQ((*first)["ts"], 0.0);
  EXPECT_THAT((*first)["name"].get<std::string>(), StartsWith("ProfilerStep#"));
}

TEST_F(Export, PerfettoSpeaksHtasDialect) {
  const json file = perfetto();
  EXPECT_THAT(text_in(folder_.file("t.json")), HasSubstr("\"rank\": 0"));
  std::set<std::string> collectives;
  for (const json& event : of_phase(file, "X"))
    if (event["args"].contains("Collective name")) collectives.insert(event["name"]);
  EXPECT_EQ(collectives, (std::set<std::string>{"nccl:all_gather root", "nccl:reduce_scatter root"}));
  std::size_t steps = 0;
  for (const json& event : of_phase(file, "X")) steps += event["name"].get<std::string>().starts_with("ProfilerStep#");
  EXPECT_EQ(steps, 6u);
  for (const json& event : of_phase(file, "X"))
    if (event["cat"] == "kernel") {
      EXPECT_EQ(event["args"]["stream"], event["tid"]);
    }
}

TEST_F(Export, PerfettoCountsLiveMemoryAndDrawsWaits) {
  const json file = perfetto();
  std::int64_t most = 0;
  for (const json& counter : of_phase(file, "C")) {
    std::int64_t sum = 0;
    for (const auto& bytes : counter["args"]) sum += bytes.get<std::int64_t>();
    most = std::max(most, sum);
  }
  EXPECT_EQ(most, 1024 + 1024 + 128) << "as the timeline's test has it";
  EXPECT_EQ(of_phase(file, "s").size(), 2u * 3 * 2) << "of 2 ranks, 3 steps: gather -> linear, reduce -> adamw";
  EXPECT_EQ(of_phase(file, "f").size(), 2u * 3 * 2);
}

TEST_F(Export, SelectionKeepsItsStepsAndRanks) {
  Selection selection;
  select_steps(selection, "2:3");
  select_ranks(selection, "1");
  const json file = perfetto(selection);
  std::set<int> ranks, steps;
  for (const json& event : of_phase(file, "X"))
    if (event["cat"] == "kernel") {
      ranks.insert(event["pid"].get<int>());
      steps.insert(event["args"]["step"].get<int>());
    }
  EXPECT_EQ(ranks, std::set<int>{1});
  EXPECT_EQ(steps, (std::set<int>{2, 3}));
  select_steps(selection, "9:");
  EXPECT_THROW(perfetto(selection), InputError);
}

TEST(ExportSelection, ReadsStepsAndRanks) {
  Selection selection;
  select_steps(selection, ":4");
  EXPECT_TRUE(selection.has_step(-1));
  EXPECT_FALSE(selection.has_step(5));
  select_ranks(selection, "0,3:4");
  EXPECT_TRUE(selection.has_rank(0) && selection.has_rank(3) && selection.has_rank(4));
  EXPECT_FALSE(selection.has_rank(1) || selection.has_rank(5));
  for (const char* wrong : {"", ":", "a", "3:2", "1:2:3", "1 "})
    EXPECT_THROW(select_steps(selection, wrong), InputError) << wrong;
  for (const char* wrong : {"", "0,", ",0", "x", "-1", "2:1"})
    EXPECT_THROW(select_ranks(selection, wrong), InputError) << wrong;
}

TEST_F(Export, CsvHasEveryEventOnce) {
  export_csv(trace_, {}, folder_.file("tables"), false);
  const std::string events = text_in(folder_.file("tables/events.csv"));
  EXPECT_THAT(events, StartsWith("rank,step,micro_batch,lane,op,kind,phase,unit,start_ns,"));
  EXPECT_EQ(std::ranges::count(events, '\n'), 1 + 30);
  EXPECT_THAT(events, HasSubstr("\n1,3,1,compute,4,adamw,update,root,3401,100,0,384,1000\n"));
  EXPECT_THAT(text_in(folder_.file("tables/steps.csv")), HasSubstr("\n3,1,3001,500,1,1,16\n"));
  EXPECT_EQ(std::ranges::count(text_in(folder_.file("tables/ops.csv")), '\n'), 1 + 5);
  EXPECT_THAT(text_in(folder_.file("tables/memory.csv")), HasSubstr("\n0,1,1200,512,512,0,0,1024,128,0,0,0,0\n"));
}

TEST_F(Export, DoesNotOverwriteUnlessForced) {
  export_csv(trace_, {}, folder_.file("t.csv"), false);
  EXPECT_THROW(export_csv(trace_, {}, folder_.file("t.csv"), false), InputError);
  EXPECT_NO_THROW(export_csv(trace_, {}, folder_.file("t.csv"), true));
  EXPECT_THROW(export_perfetto(trace_, {}, folder_.file("t.csv"), false), InputError);
  EXPECT_THROW(export_perfetto(trace_, {}, folder_.file("no/such/folder.json"), false), LibraryError);
}

}  // namespace
}  // namespace foreshard::trace
