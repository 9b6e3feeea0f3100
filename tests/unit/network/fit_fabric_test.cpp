#include "sim/network/fit_fabric.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sim/network/import_command.hpp"

namespace foreshard::sim::network {
namespace {

using model::OpKind;

TEST(NonNegativeLeastSquares, FindsWhatMadeTheNumbers) {
  const std::vector<std::vector<double>> rows{{1, 0.5}, {1, 2}, {1, 7}, {1, 11}};
  const auto x = non_negative_least_squares(rows, {2 + 1.5, 2 + 6, 2 + 21, 2 + 33});
  EXPECT_NEAR(x[0], 2, 1e-9);
  EXPECT_NEAR(x[1], 3, 1e-9);
}

/// y = 10 - t at t = 0, 1, 2 would need a negative slope; without it the mean is best.
TEST(NonNegativeLeastSquares, PutsNothingBelowZero) {
  const auto x = non_negative_least_squares({{1, 0}, {1, 1}, {1, 2}}, {10, 9, 8});
  EXPECT_NEAR(x[0], 9, 1e-9);
  EXPECT_EQ(x[1], 0);
  EXPECT_EQ(non_negative_least_squares({{1, 0}, {1, 1}}, {-1, -2}), (std::vector<double>{0, 0}));
}

Cluster with(Cluster cluster, const Fabric& fabric) {
  cluster.fabric = fabric;
  return cluster;
}

/// What a cluster with this fabric would measure.
std::vector<MeasuredCollective> measured_on(const Cluster& cluster, const std::vector<OpKind>& kinds) {
  std::vector<MeasuredCollective> points;
  for (const OpKind kind : kinds)
    for (double bytes = 1 << 20; bytes <= 1LL << 33; bytes *= 2) {
      const Group group{16, 8, 1};
      points.push_back({kind, {}, group, bytes, 1e6 * collective_time(cluster, {}, kind, bytes, group).seconds});
    }
  return points;
}

TEST(FitFabric, FindsTheFabricThatWasMeasured) {
  const Cluster cluster = read_cluster("dgx-h100");
  Fabric real = cluster.fabric;
  real.floor_s.value = 31e-6, real.efficiency.value = 0.8;
  real.all_gather_s_per_sqrt_byte.value = 2e-8, real.reduce_scatter_s_per_sqrt_byte.value = 3e-8;
  const auto points = measured_on(with(cluster, real), {OpKind::all_gather, OpKind::reduce_scatter});
  const FittedFabric fitted = fit_fabric(cluster, points, "ours", "test");
  EXPECT_NEAR(fitted.fabric.floor_s.value, 31e-6, 1e-8);
  EXPECT_NEAR(fitted.fabric.efficiency.value, 0.8, 1e-4);
  EXPECT_NEAR(fitted.fabric.all_gather_s_per_sqrt_byte.value, 2e-8, 1e-11);
  EXPECT_NEAR(fitted.fabric.reduce_scatter_s_per_sqrt_byte.value, 3e-8, 1e-11);
  EXPECT_EQ(fitted.fabric.all_reduce_s_per_sqrt_byte.value, cluster.fabric.all_reduce_s_per_sqrt_byte.value)
      << "not measured";
  EXPECT_EQ(fitted.fabric.all_reduce_s_per_sqrt_byte.source, cluster.fabric.all_reduce_s_per_sqrt_byte.source);
  EXPECT_LT(fitted.error_after_pct, 0.01);
  EXPECT_GT(fitted.error_before_pct, 1);
}

/// Published runs on 2 nodes of p4de: no worse than the catalogue's constants, which are fitted to many more.
TEST(FitFabric, MeetsAPublishedSweepAtLeastAsWellAsTheCatalogue) {
  std::vector<MeasuredCollective> points;
  std::ifstream in(FORESHARD_TEST_DATA "/nccl_sweeps.csv");
  for (std::string line; std::getline(in, line);) {
    const auto cells = split(line, ',');
    if (cells[0] != "p4de-2") continue;
    points.push_back({*model::find_op_kind(std::string(cells[1])),
                      {2, 28, 3},
                      {16, 8, 1},
                      std::stod(std::string(cells[7])),
                      std::stod(std::string(cells[8]))});
  }
  ASSERT_GT(points.size(), 10u);
  const FittedFabric fitted = fit_fabric(read_cluster("aws-p4de"), points, "efa", "test");
  EXPECT_LE(fitted.error_after_pct, fitted.error_before_pct + 1);
  EXPECT_LE(fitted.error_after_pct, 15);
}

class ImportNccl : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  int import(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "import-nccl");
    std::vector<const char*> argv;
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    return import_nccl(static_cast<int>(argv.size()), argv.data());
  }
  std::string message_of(const std::vector<std::string>& arguments) {
    try {
      import(arguments);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  /// The output that nccl-tests would print on this cluster.
  void write_run(const std::string& name, const Cluster& cluster, OpKind kind, const Group& group) {
    std::ofstream out(path(name));
    out << "# Collective test starting: " << model::name_of(kind) << "_perf\n";
    for (int rank = 0; rank < group.ranks; ++rank)
      out << fmt::format("#  Rank {:2} Group  0 Pid {} on node-{} device {:2} [0000:4e:00] NVIDIA H100\n", rank,
                         100 + rank, rank / group.ranks_per_node, rank % group.ranks_per_node);
    out << "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
    for (double bytes = 1 << 20; bytes <= 1LL << 32; bytes *= 4) {
      const double us = 1e6 * collective_time(cluster, {}, kind, bytes, group).seconds;
      out << fmt::format("{:.0f} 1 float none -1 {:.2f} 1.0 1.0 0 {:.2f} 1.0 1.0 0\n", bytes, us, us);
    }
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      (std::string("import_nccl_") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ImportNccl, WritesAFabricThatAClusterFileCanName) {
  const Cluster dgx = read_cluster("dgx-h100");
  Fabric real = dgx.fabric;
  real.floor_s.value = 40e-6, real.efficiency.value = 0.7, real.all_gather_s_per_sqrt_byte.value = 1e-8;
  write_run("gather.txt", with(dgx, real), OpKind::all_gather, {16, 8, 1});
  const std::string out = path("fabric.json");
  EXPECT_EQ(import({path("gather.txt"), "--machine.cluster=dgx-h100", "--out=" + out}), 0);

  std::ifstream catalogue(FORESHARD_TEST_DATA "/../../sim/machines/clusters/dgx-h100.json");
  nlohmann::json cluster = nlohmann::json::parse(catalogue);
  cluster["fabric"] = out;
  std::ofstream(path("mine.json")) << cluster.dump();
  const Cluster mine = read_cluster(path("mine.json"));
  EXPECT_NEAR(mine.fabric.efficiency.value, 0.7, 1e-3);
  EXPECT_NE(mine.fabric.floor_s.source.find("gather.txt"), std::string::npos);
  for (const double bytes : {3e6, 7e8})
    EXPECT_NEAR(collective_time(mine, {}, OpKind::all_gather, bytes, {16, 8, 1}).seconds /
                    collective_time(with(dgx, real), {}, OpKind::all_gather, bytes, {16, 8, 1}).seconds,
                1, 1e-3);
}

TEST_F(ImportNccl, FitsTheLinksOfANodeWhereNothingLeavesIt) {
  Cluster dgx = read_cluster("dgx-h100");
  dgx.intra.floor_s.value = 9e-6;
  write_run("inside.txt", dgx, OpKind::reduce_scatter, {8, 8, 1});
  EXPECT_EQ(import({path("inside.txt"), "--machine.cluster=dgx-h100", "--out=" + path("links.json"), "--name=mine"}),
            0);
  const Fabric links = read_fabric(path("links.json"));
  EXPECT_EQ(links.name, "mine");
  EXPECT_NEAR(links.floor_s.value, 9e-6, 1e-7);
}

/// Times that no floor and no bandwidth give: the same for all sizes but one, where the cluster's own is right.
TEST_F(ImportNccl, RefusesAFitThatIsWorseThanWhatTheClusterHas) {
  const Cluster dgx = read_cluster("dgx-h100");
  write_run("good.txt", dgx, OpKind::all_gather, {16, 8, 1});
  std::ofstream bad(path("good.txt"), std::ios::app);
  for (int i = 0; i < 4; ++i) bad << fmt::format("{} 1 float none -1 0.001 1 1 0\n", 1024 << i);
  bad.close();
  const std::vector<std::string> asked{path("good.txt"), "--machine.cluster=dgx-h100", "--out=" + path("f.json")};
  const std::string message = message_of(asked);
  EXPECT_NE(message.find("the fit is worse"), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(path("f.json")));
  std::vector<std::string> forced = asked;
  forced.emplace_back("--force");
  EXPECT_EQ(import(forced), 0);
}

TEST_F(ImportNccl, RefusesWhatDoesNotGoTogetherAndOverwritesNothing) {
  const Cluster dgx = read_cluster("dgx-h100");
  write_run("inside.txt", dgx, OpKind::all_gather, {8, 8, 1});
  write_run("across.txt", dgx, OpKind::all_gather, {16, 8, 1});
  const std::string on = "--machine.cluster=dgx-h100", out = "--out=" + path("f.json");
  EXPECT_NE(message_of({path("inside.txt"), path("across.txt"), on, out}).find("files of one kind"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path("f.json")));
  EXPECT_NE(message_of({path("inside.txt"), out}).find("machine.cluster is not set"), std::string::npos);
  EXPECT_NE(message_of({path("inside.txt"), on}).find("--out is not set"), std::string::npos);
  EXPECT_EQ(import({path("inside.txt"), on, out}), 0);
  EXPECT_NE(message_of({path("inside.txt"), on, out}).find("exists already"), std::string::npos);
  EXPECT_EQ(import({path("inside.txt"), on, out, "--force"}), 0);
  std::ofstream bare(path("bare.txt"));
  bare << "# size count type redop root time algbw busbw #wrong\n1048576 1 float none -1 90 1 1 0\n" << std::flush;
  EXPECT_NE(message_of({path("bare.txt"), on, out, "--force"}).find("--ranks"), std::string::npos);
  EXPECT_NE(message_of({path("bare.txt"), on, out, "--force", "--ranks=16"}).find("--op"), std::string::npos);
  const std::vector<std::string> told{path("bare.txt"), on, out, "--force", "--ranks=16", "--op=all_gather"};
  EXPECT_NE(message_of(told).find("1 sizes were measured"), std::string::npos);
  for (int i = 2; i < 5; ++i) bare << fmt::format("{} 1 float none -1 {} 1 1 0\n", i << 20, 90 * i);
  bare.close();
  EXPECT_EQ(import({path("bare.txt"), on, out, "--force", "--ranks=16", "--op=all_gather", "--nccl=2.21.5"}), 0);
}

}  // namespace
}  // namespace foreshard::sim::network
