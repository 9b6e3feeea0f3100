#include "sim/network/nccl_tests.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace foreshard::sim::network {
namespace {

using model::OpKind;

const std::string devices =
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid 101 on node-a device  0 [0000:4e:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid 102 on node-a device  1 [0000:5f:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  2 Group  0 Pid 103 on node-b device  0 [0000:4e:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  3 Group  0 Pid 104 on node-b device  1 [0000:5f:00] NVIDIA H100 80GB HBM3\n";

/// As printed since 2.17: names of program and library, a root, #wrong.
const std::string recent =
    "# nccl-tests version 2.17.8 nccl-headers=22803 nccl-library=22304\n"
    "# Collective test starting: all_gather_perf\n"
    "# nThread 1 nGpus 1 minBytes 1024 maxBytes 1073741824 step: 2(factor) warmup iters: 1 iters: 20\n" +
    devices +
    "#\n"
    "#                                                              out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  "
    "#wrong \n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)\n"
    "           0             0     float    none      -1     0.10    0.00    0.00       0     0.10    0.00    0.00    "
    "   0\n"
    "     1048576         65536     float    none      -1    61.20   17.13   12.85       0    60.11   17.44   13.08    "
    "   0\n"
    "  1073741824      67108864     float    none      -1  11253.7   95.41   71.56       0  11233.1   95.59   71.69    "
    " N/A\n"
    "# Out of bounds values : 0 OK\n"
    "# Avg bus bandwidth    : 42.3\n";

void expect_the_two(const NcclTestsRun& run) {
  ASSERT_EQ(run.sizes.size(), 2u);
  EXPECT_EQ(run.sizes[0].bytes, 1048576);
  EXPECT_EQ(run.sizes[0].us, 61.20);
  EXPECT_EQ(run.sizes[1].bytes, 1073741824);
  EXPECT_EQ(run.sizes[1].us, 11253.7);
  EXPECT_EQ(run.kind, OpKind::all_gather);
  ASSERT_TRUE(run.group);
  EXPECT_EQ(run.group->ranks, 4);
  EXPECT_EQ(run.group->ranks_per_node, 2);
}

TEST(NcclTests, TextOfRecentReleases) {
  const NcclTestsRun run = parse_nccl_tests(recent, "run.txt");
  expect_the_two(run);
  EXPECT_EQ(run.nccl, (Version{2, 23, 4}));
  EXPECT_EQ(run.device, "NVIDIA H100 80GB HBM3");
}

/// Without root and program, with "error"; the version as NCCL_DEBUG=VERSION prints it; 4 ranks, busbw 3/4 of algbw.
TEST(NcclTests, TextOfOldReleases) {
  const std::string old =
      "NCCL version 2.10.3+cuda11.4\n"
      "# nThread: 1 nGpus: 1 minBytes: 1024 maxBytes: 1073741824 step: 2(factor) warmup iters: 5 iters: 20 validation: "
      "1\n"
      "# Using devices\n"
      "#   Rank  0 Pid   1001 on     node-a device  0 [0x07] NVIDIA A100-SXM4-40GB\n"
      "#   Rank  1 Pid   1002 on     node-a device  1 [0x0f] NVIDIA A100-SXM4-40GB\n"
      "#   Rank  2 Pid   1003 on     node-b device  0 [0x07] NVIDIA A100-SXM4-40GB\n"
      "#   Rank  3 Pid   1004 on     node-b device  1 [0x0f] NVIDIA A100-SXM4-40GB\n"
      "#                                             out-of-place                       in-place\n"
      "#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error\n"
      "#        (B)    (elements)             (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
      "     1048576         65536   float    61.20   17.13   12.85  0e+00    60.11   17.44   13.08  0e+00\n"
      "  1073741824      67108864   float  11253.7   95.41   71.56  0e+00    11233.   95.59   71.69  0e+00\n";
  const NcclTestsRun run = parse_nccl_tests(old, "run.txt");
  expect_the_two(run);
  EXPECT_EQ(run.nccl, (Version{2, 10, 3}));
  EXPECT_EQ(run.device, "NVIDIA A100-SXM4-40GB");
}

TEST(NcclTests, TextWithTimestampsIterationsAndTags) {
  const std::string tag = "[1,0]<stdout>:";
  std::string text;
  for (const std::string& line :
       {std::string("# Collective test starting: all_gather_perf"),
        std::string("#  Rank  0 Group  0 Pid 101 on node-a device  0 [0000:4e:00] NVIDIA H100"),
        std::string("#  Rank  1 Group  0 Pid 102 on node-a device  1 [0000:5f:00] NVIDIA H100"),
        std::string("#  Rank  2 Group  0 Pid 103 on node-b device  0 [0000:4e:00] NVIDIA H100"),
        std::string("#  Rank  3 Group  0 Pid 104 on node-b device  1 [0000:5f:00] NVIDIA H100"),
        std::string("# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% "
                    "time algbw busbw #wrong i_min i_max i_p99 i_cv% timestamp"),
        std::string("1048576 65536 float none -1 61.20 17.13 12.85 0 59.1 70.0 69.9 2.1 "
                    "60.11 17.44 13.08 0 58.0 66.0 65.0 1.9 2026-01-12 10:11:12"),
        std::string("1073741824 67108864 float none -1 11253.7 95.41 71.56 0 11200 11300 11299 0.3 "
                    "11233.1 95.59 71.69 0 11200 11300 11299 0.3 2026-01-12 10:11:13")})
    text += tag + line + "\n";
  expect_the_two(parse_nccl_tests(text, "tagged.txt"));
}

TEST(NcclTests, TextWithResultsInPlaceAlone) {
  std::string text = devices +
                     "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
                     "1048576 65536 float none -1                                61.20 17.13 12.85 0\n"
                     "1073741824 67108864 float none -1                          11253.7 95.41 71.56 0\n";
  expect_the_two(parse_nccl_tests(text, "in_place.txt"));
}

const std::string json =
    R"({"version":2,"start_time":"2026-01-12 10:00:00","args":["./build/all_gather_perf","-J","out.json"],)"
    R"("env":["SECRET=1"],"nccl_version":22304,"config":{"nthreads":1,"ngpus":1,"devices":[)"
    R"({"rank":0,"group":0,"pid":1,"hostname":"node-a","device":0,"device_hex":"0000:4e:00","device_info":"NVIDIA H100"},)"
    R"({"rank":1,"group":0,"pid":2,"hostname":"node-a","device":1,"device_hex":"0000:5f:00","device_info":"NVIDIA H100"},)"
    R"({"rank":2,"group":0,"pid":3,"hostname":"node-b","device":0,"device_hex":"0000:4e:00","device_info":"NVIDIA H100"},)"
    R"({"rank":3,"group":0,"pid":4,"hostname":"node-b","device":1,"device_hex":"0000:5f:00","device_info":"NVIDIA H100"}]},)"
    R"("results":[{"size":1048576,"count":65536,"type":"float","redop":"none","root":"-1",)"
    R"("out_of_place":{"time":61.20,"alg_bw":17.13,"bus_bw":12.85,"nwrong":0.0},)"
    R"("in_place":{"time":60.11,"alg_bw":17.44,"bus_bw":13.08,"nwrong":null}},)"
    R"({"size":1073741824,"count":67108864,"type":"float","redop":"none","root":"-1","out_of_place":null,)"
    R"("in_place":{"time":11253.7,"alg_bw":95.41,"bus_bw":71.56,"nwrong":0.0}}],)"
    R"("out_of_bounds":{"count":0,"okay":"true"}})";

TEST(NcclTests, Json) {
  const NcclTestsRun run = parse_nccl_tests(json, "run.json");
  expect_the_two(run);
  EXPECT_EQ(run.nccl, (Version{2, 23, 4}));
}

/// Bus bandwidths of 8 ranks: 7/8 of a gather or a scattered sum, 14/8 of a sum for all.
TEST(NcclTests, TheCollectiveIsFoundByItsBandwidths) {
  const auto kind = [](const std::string& redop, double busbw) {
    std::string text;
    for (int rank = 0; rank < 8; ++rank)
      text += "#  Rank  " + std::to_string(rank) + " Group  0 Pid 1 on node device  0 [0000:4e:00] NVIDIA H100\n";
    text += "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n8388608 1 float " + redop +
            " -1 100 80.0 " + std::to_string(busbw) + " 0 100 80.0 " + std::to_string(busbw) + " 0\n";
    return parse_nccl_tests(text, "run.txt").kind;
  };
  EXPECT_EQ(kind("none", 70), OpKind::all_gather);
  EXPECT_EQ(kind("sum", 70), OpKind::reduce_scatter);
  EXPECT_EQ(kind("sum", 140), OpKind::all_reduce);
  EXPECT_EQ(kind("sum", 80), std::nullopt) << "a broadcast";
}

std::string message_of(const std::string& text) {
  try {
    parse_nccl_tests(text, "run.txt");
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    return error.what();
  }
  return "";
}

TEST(NcclTests, WhatIsNotTheirsIsRefusedByName) {
  const std::string header = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
  EXPECT_NE(message_of("").find("run.txt: no results"), std::string::npos);
  EXPECT_NE(message_of("a b c\n1 2 3\n").find("no results"), std::string::npos);
  EXPECT_NE(message_of(header + "1024 8 float none\n").find("line 2: 4 values under 13 columns"), std::string::npos);
  EXPECT_NE(message_of(header + "1024 8 float none -1 12 1 1 5 12 1 1 5\n").find("5 values were wrong"),
            std::string::npos);
  EXPECT_NE(message_of(header + "1024 8 float none -1 fast 1 1 0 12 1 1 0\n").find("\"fast\" in column 6"),
            std::string::npos);
  EXPECT_NE(message_of("{\"results\": 3}").find("results: missing"), std::string::npos);
  EXPECT_NE(message_of("{\"results\": [{\"size\": 4}]}").find("results[0]"), std::string::npos);
  EXPECT_NE(message_of("{\"results\": [").find("cut short"), std::string::npos);
  std::string uneven = devices;
  uneven += "#  Rank  4 Group  0 Pid 105 on node-b device  2 [0000:6f:00] NVIDIA H100 80GB HBM3\n";
  EXPECT_NE(message_of(uneven + header + "1024 8 float none -1 12 1 1 0 12 1 1 0\n").find("equally many"),
            std::string::npos);
}

}  // namespace
}  // namespace foreshard::sim::network
