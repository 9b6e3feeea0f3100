// Published runs of nccl-tests and the like, against the model with the catalogue's constants. What the measuring
// program itself adds to every call (a PyTorch loop, an XLA executable) is part of the measurement, not of the fabric.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>

#include "base/text.hpp"
#include "sim/network/collective.hpp"

namespace foreshard::sim::network {
namespace {

constexpr double large = 16 << 20;
const std::map<std::string, double, std::less<>> program_us{{"nccl-tests", 0}, {"torch", 17.1}, {"xla", 11.4}};

struct Point {
  std::string sweep, cluster, program;
  model::OpKind kind;
  Version version;
  Group group;
  double bytes, us;
};

Version version_of(std::string_view text) {
  const auto parts = split(text, '.');
  return {std::stoi(std::string(parts[0])), std::stoi(std::string(parts[1])), std::stoi(std::string(parts[2]))};
}

Point point_of(const std::string& line) {
  const auto cells = split(line, ',');
  const auto number = [&](std::size_t i) { return std::stod(std::string(cells.at(i))); };
  const int nodes = static_cast<int>(number(3)), per_node = static_cast<int>(number(4));
  return {std::string(cells[0]),
          std::string(cells[2]),
          std::string(cells[6]),
          *model::find_op_kind(std::string(cells[1])),
          version_of(cells[5]),
          {nodes * per_node, per_node},
          number(7),
          number(8)};
}

std::vector<Point> published() {
  std::ifstream in(FORESHARD_TEST_DATA "/nccl_sweeps.csv");
  std::vector<Point> points;
  std::string line;
  for (std::getline(in, line); std::getline(in, line);) points.push_back(point_of(line));
  return points;
}

double predicted_us(const Point& point) {
  const Cluster cluster = read_cluster(point.cluster);
  return collective_time(cluster, point.version, point.kind, point.bytes, point.group).seconds * 1e6 +
         program_us.at(point.program);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

struct Errors {
  std::vector<double> small, large;
};

std::map<std::string, Errors> errors_by_sweep() {
  std::map<std::string, Errors> all;
  for (const Point& point : published()) {
    const double error = 100 * std::abs(predicted_us(point) / point.us - 1);
    for (const std::string& name : {point.sweep, std::string("all")})
      (point.bytes >= large ? all[name].large : all[name].small).push_back(error);
  }
  return all;
}

TEST(PublishedSweeps, AreMetWithinTheseMedianErrors) {
  const auto all = errors_by_sweep();
  for (const auto& [name, errors] : all)
    fmt::print("{:16} median error {:5.1f} % of {:3} below 16 MiB, {:5.1f} % of {:3} from there on\n", name,
               median(errors.small), errors.small.size(), median(errors.large), errors.large.size());
  EXPECT_LE(median(all.at("all").small), 12);
  EXPECT_LE(median(all.at("all").large), 10);
}

// For sim/machines/fit_fabrics.py: what the model says now, beside what was measured.
TEST(PublishedSweeps, AreWrittenForRefitting) {
  const char* path = std::getenv("FORESHARD_SWEEP_ESTIMATES");
  if (path == nullptr) GTEST_SKIP() << "FORESHARD_SWEEP_ESTIMATES names no file";
  std::ofstream out(path);
  for (const Point& point : published()) {
    Cluster cluster = read_cluster(point.cluster);
    cluster.intra.floor_s = cluster.intra.all_gather_s_per_sqrt_byte =
        cluster.intra.reduce_scatter_s_per_sqrt_byte = {};
    cluster.intra.all_reduce_s_per_sqrt_byte = {};
    const bool inside = layout_of(cluster, point.group).nodes == 1;
    const std::string fabric = (inside ? cluster.intra : read_cluster(point.cluster).fabric).name;
    cluster.fabric = cluster.intra;
    const double us = collective_time(cluster, point.version, point.kind, point.bytes, point.group).seconds * 1e6;
    out << fmt::format("{},{},{},{},{:.0f},{},{:.3f}\n", point.sweep, fabric, model::name_of(point.kind), point.program,
                       point.bytes, point.us, us);
  }
  EXPECT_TRUE(out.good());
}

}  // namespace
}  // namespace foreshard::sim::network
