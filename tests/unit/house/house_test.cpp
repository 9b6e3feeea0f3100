// The rules of the house, over all sources; and proof that each rule finds a violation.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

#include "unit/house/include_rules.hpp"
#include "unit/house/source_tree.hpp"
#include "unit/house/test_names.hpp"

namespace foreshard::house {
namespace {

const std::filesystem::path root = FORESHARD_SOURCE_DIR;

std::string lines_of(const std::vector<std::string>& problems) { return fmt::format("{}", fmt::join(problems, "\n")); }

TEST(House, SeesTheSources) {
  const auto files = source_files(root);
  for (const char* known :
       {"src/exec/run_plan.cpp", "src/base/hash.hpp", "kernels/backend.hpp", "tests/unit/house/house_test.cpp"})
    EXPECT_TRUE(std::ranges::count(files, std::filesystem::path(known))) << known;
}

TEST(House, IncludesFollowTheLayers) {
  std::vector<std::string> problems;
  for (const auto& path : source_files(root))
    if (is_cpp(path)) std::ranges::copy(include_problems(path, read_text(root / path)), std::back_inserter(problems));
  EXPECT_TRUE(problems.empty()) << lines_of(problems);
}

/// So that compiling a source shows that its header needs nothing included before it.
TEST(House, SourcesIncludeTheirOwnHeaderFirst) {
  for (const auto& path : source_files(root)) {
    if (layer_of(path).empty() || path.extension() != ".cpp") continue;
    auto header = path;
    if (!exists(root / header.replace_extension(".hpp"))) continue;
    EXPECT_EQ(first_include(read_text(root / path)), included_as(header)) << path;
  }
}

TEST(House, HeadersMayBeIncludedTwice) {
  for (const auto& path : source_files(root)) {
    if (path.extension() != ".hpp") continue;
    EXPECT_NE(read_text(root / path).find("#pragma once\n"), std::string::npos) << path;
  }
}

TEST(House, FindsWhatIsIncludedFirst) {
  EXPECT_EQ(first_include("// a\n#include \"b/c.hpp\"\n#include <vector>\n"), "b/c.hpp");
  EXPECT_EQ(first_include("int x;\n  # include <vector>\n#include \"b/c.hpp\"\n"), "vector");
  EXPECT_EQ(first_include("int x;\n"), "");
  EXPECT_EQ(included_as("src/base/hash.hpp"), "base/hash.hpp");
  EXPECT_EQ(included_as("kernels/cpu/gelu.hpp"), "kernels/cpu/gelu.hpp");
}

TEST(House, FilesHaveAtMost400Lines) {
  for (const auto& path : source_files(root)) {
    const std::string text = read_text(root / path);
    const auto lines = std::ranges::count(text, '\n');
    EXPECT_LE(lines, 400) << path << ": look for two subjects in one file";
  }
}

TEST(House, NamesSayWhatIsInside) {
  for (const auto& path : source_files(root))
    for (const auto& part : path) EXPECT_EQ(empty_word_in(part.string()), "") << path;
}

TEST(House, AlgorithmsHoldNoBackendSwitches) {
  const std::regex guard(R"((^|\n)\s*#\s*(el)?if[^\n]*(CUDA|NCCL|MPI))");
  for (const auto& path : source_files(root)) {
    if (layer_of(path).empty() || !is_cpp(path)) continue;
    EXPECT_FALSE(std::regex_search(read_text(root / path), guard)) << path << ": put the other case in a stub file";
  }
}

/// The order in which a hash table, or a table sorted by addresses, is walked is nobody's decision: on two ranks it may
/// differ, and then so does the order of their collectives.
TEST(House, WhatRanksMustHaveAlikeIsNeverInTheOrderOfAHashOrAnAddress) {
  const std::regex table(R"(unordered_|std::(map|set)<[^,>]*\*)");
  const std::set<std::string> layers = {"model", "plan", "exec", "engine", "comm"};
  for (const auto& path : source_files(root)) {
    if (!is_cpp(path) || !layers.contains(layer_of(path))) continue;
    EXPECT_FALSE(std::regex_search(read_text(root / path), table)) << path;
  }
}

std::set<std::string> all_tests() {
  std::set<std::string> tests;
  for (const auto& path : source_files(root))
    if (is_cpp(path) && *path.begin() == "tests") tests.merge(tests_defined_in(read_text(root / path)));
  return tests;
}

TEST(House, PagesNameTestsThatExist) {
  const std::set<std::string> tests = all_tests();
  for (const char* page : {"src/FSDP.md", "tests/CASES.md"}) {
    const auto named = tests_named_in(read_text(root / page));
    EXPECT_GT(named.size(), 50U) << page;
    for (const std::string& name : named) EXPECT_TRUE(is_test(name, tests)) << page << " names " << name;
  }
}

TEST(House, FindsNamesOfNoTest) {
  const auto tests = tests_defined_in("TEST(One, IsHere) {\nTEST_P(Two,\n       IsToo) {\n// TEST(Three, IsNot)\n");
  EXPECT_EQ(tests, (std::set<std::string>{"One.IsHere", "Two.IsToo"}));
  const auto named =
      tests_named_in("`One.Is…`, `Two.*`, `T*.IsToo`, `Three.IsNot`, `One.Is`, `plan/op`, `README.md`, One.X");
  EXPECT_EQ(named, (std::vector<std::string>{"One.Is*", "Two.*", "T*.IsToo", "Three.IsNot", "One.Is"}));
  std::vector<bool> known;
  for (const std::string& name : named) known.push_back(is_test(name, tests));
  EXPECT_EQ(known, (std::vector<bool>{true, true, true, false, false}));
}

struct Bad {
  const char* path;
  const char* text;
  const char* message;
};

class HouseFinds : public testing::TestWithParam<Bad> {};

TEST_P(HouseFinds, TheViolation) {
  const auto problems = include_problems(GetParam().path, GetParam().text);
  ASSERT_EQ(problems.size(), 1u) << lines_of(problems);
  EXPECT_NE(problems[0].find(GetParam().message), std::string::npos) << problems[0];
}

INSTANTIATE_TEST_SUITE_P(
    Includes, HouseFinds,
    testing::Values(Bad{"src/base/a.hpp", "#pragma once\n#include \"model/graph.hpp\"\n",
                        "src/base/a.hpp:2: base may not include model"},
                    Bad{"src/model/a.cpp", "#include \"plan/op.hpp\"", "model may not include plan"},
                    Bad{"src/plan/a.cpp", "#include \"trace/recorder.hpp\"", "plan may not include trace"},
                    Bad{"src/trace/a.cpp", "#include \"exec/run_plan.hpp\"", "trace may not include exec"},
                    Bad{"src/comm/a.hpp", "#include \"plan/op.hpp\"", "comm may not include plan"},
                    Bad{"kernels/cpu/a.cpp", "#include \"model/graph.hpp\"", "kernels may not include model"},
                    Bad{"src/engine/a.cpp", "#include \"sim/machine.hpp\"", "engine may not include sim"},
                    Bad{"src/engine/a.cpp", "#include \"train/trainer.hpp\"", "engine may not include train"},
                    Bad{"sim/a.cpp", "#include \"comm/communicator.hpp\"", "sim may not include comm"},
                    Bad{"sim/cost/a.cpp", "  #  include \"kernels/backend.hpp\"", "sim may not include kernels"},
                    Bad{"sim/a.cpp", "#include \"engine/arena.hpp\"", "sim may not include engine"},
                    Bad{"sim/a.cpp", "#include <mpi.h>", "may not see MPI"},
                    Bad{"src/engine/a.cpp", "#include <mpi.h>", "may not see MPI"},
                    Bad{"src/comm/local_communicator.cpp", "#include \"mpi.h\"", "may not see MPI"},
                    Bad{"src/train/metrics.cpp", "#include <hdf5.h>", "may not see HDF5"},
                    Bad{"src/engine/cpu_executor.cpp", "#include <cuda_runtime.h>", "may not see CUDA"},
                    Bad{"src/comm/communicator.hpp", "#include <nccl.h>", "may not see CUDA"},
                    Bad{"src/engine/a.cpp", "#include <oneapi/dnnl/dnnl.hpp>", "may not see oneDNN"},
                    Bad{"src/plan/a.cpp", "#include \"op.hpp\"", "name it by its path"},
                    Bad{"src/plan/a.cpp", "#include \"../base/hash.hpp\"", "name it by its path"}));

TEST(House, AllowsWhatTheLayersAllow) {
  EXPECT_EQ(
      lines_of(include_problems("src/comm/mpi_communicator.cpp", "#include <mpi.h>\n#include \"base/error.hpp\"")), "");
  EXPECT_EQ(lines_of(include_problems("src/trace/writer.cpp", "#include <hdf5.h>\n#include \"plan/op.hpp\"")), "");
  EXPECT_EQ(lines_of(include_problems("src/train/checkpoint_file.cpp", "#include <hdf5.h>")), "");
  EXPECT_EQ(lines_of(include_problems("src/engine/cuda_executor.cpp", "#include <cuda_runtime.h>")), "");
  EXPECT_EQ(lines_of(include_problems("kernels/cuda/adamw.cu", "#include <cub/block.cuh>")), "");
  EXPECT_EQ(lines_of(include_problems("src/comm/nccl_communicator.cpp", "#include <nccl.h>")), "");
  EXPECT_EQ(lines_of(include_problems("apps/train.cpp", "#include <mpi.h>\n#include \"train/trainer.hpp\"")), "");
  EXPECT_EQ(lines_of(include_problems("tests/mpi/a.cpp", "#include <mpi.h>\n#include \"x.hpp\"")), "");
}

TEST(House, FindsNamesThatSayNothing) {
  EXPECT_EQ(empty_word_in("string_utils.hpp"), "utils");
  EXPECT_EQ(empty_word_in("common"), "common");
  EXPECT_EQ(empty_word_in("memory-manager.cpp"), "manager");
  EXPECT_EQ(empty_word_in("communicator.hpp"), "");
}

}  // namespace
}  // namespace foreshard::house
