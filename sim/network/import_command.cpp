#include "sim/network/import_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/run_main.hpp"
#include "base/text.hpp"
#include "sim/network/fit_fabric.hpp"

namespace foreshard::sim::network {
namespace {

using model::OpKind;
constexpr std::size_t fewest = 4;  // sizes, for a floor, a square root and an efficiency

Config keys() {
  Config config(
      "foreshard-plan import-nccl",
      "Fits what a fabric adds to NCCL's own estimate to what nccl-tests measured on a cluster, and writes it "
      "as a fabric file that a cluster's JSON file can name.");
  config.example(
      "foreshard-plan import-nccl all_gather.txt reduce_scatter.json --machine.cluster=aws-p5 --out=efa.json");
  config.add_arguments("FILE", "output of all_gather_perf, reduce_scatter_perf or all_reduce_perf: text, or -J's JSON",
                       1, 1 << 10);
  config.add("machine.cluster", "", "where it was measured: its name in the catalogue, or a JSON file of that form");
  config.add("out", "", "the fabric file to write");
  config.add("force", false, "overwrite it; write a fit that is worse than what the cluster has");
  config.add("name", "", "of the fabric; by default the one that the cluster has, \"measured\"");
  config.add("op", "", "what was timed, where a file does not say it",
             {.choices = {"", "all_gather", "reduce_scatter", "all_reduce"}});
  config.add("ranks", 0, "GPUs that took part, where a file does not list them", {.min = 0});
  config.add("ranks_per_node", 0, "of these on a node; 0: all that fit", {.min = 0});
  config.add("nccl", "", "release of NCCL, where a file does not say it; by default the newest known");
  return config;
}

[[noreturn]] void refuse(const std::string& what) { throw InputError(ExitCode::usage, what); }

OpKind kind_of(const NcclTestsRun& run, const Config& config) {
  if (run.kind) return *run.kind;
  const auto named = config.get<std::string>("op");
  for (const OpKind kind : {OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_reduce})
    if (model::name_of(kind) == named) return kind;
  refuse(fmt::format("{}: does not say which collective was timed\n  set --op", run.path));
}

Group group_of(const NcclTestsRun& run, const Config& config, const Cluster& cluster) {
  if (run.group) return *run.group;
  const int ranks = config.get<int>("ranks"), asked = config.get<int>("ranks_per_node");
  if (ranks < 2) refuse(fmt::format("{}: lists no devices\n  set --ranks to the GPUs that took part", run.path));
  return {ranks, std::min(ranks, asked > 0 ? asked : cluster.gpus_per_node), 1};
}

Version version_of(const NcclTestsRun& run, const Config& config) {
  const auto text = config.get<std::string>("nccl");
  if (run.nccl || text.empty()) return run.nccl.value_or(Version{});
  Version version;
  if (std::sscanf(text.c_str(), "%d.%d.%d", &version.major, &version.minor, &version.patch) != 3)
    refuse(fmt::format("--nccl={} is not a release\n  expected: for example 2.21.5", text));
  return version;
}

std::vector<MeasuredCollective> points_of(const Config& config, const Cluster& cluster) {
  std::vector<MeasuredCollective> points;
  std::string first;
  bool across = false;
  for (const std::string& path : config.arguments()) {
    const NcclTestsRun run = read_nccl_tests(path);
    const Group group = group_of(run, config, cluster);
    if (group.ranks < 2) refuse(fmt::format("{}: one rank alone; expected two or more", path));
    const bool leaves = layout_of(cluster, group).nodes > 1;
    if (first.empty()) first = path, across = leaves;
    if (leaves != across)
      refuse(fmt::format(
          "{} was measured inside a node, {} across nodes\n  expected: files of one kind; import the others "
          "into a fabric of their own",
          across ? path : first, across ? first : path));
    for (const MeasuredSize& size : run.sizes)
      points.push_back({kind_of(run, config), version_of(run, config), group, size.bytes, size.us});
  }
  if (points.size() < fewest)
    refuse(fmt::format("{} sizes were measured in all\n  expected: at least {}, from small to large messages",
                       points.size(), fewest));
  return points;
}

void expect_no_input(const std::string& path, const std::vector<std::string>& inputs) {
  std::error_code ignored;
  for (const std::string& input : inputs)
    if (std::filesystem::equivalent(path, input, ignored))
      refuse(fmt::format("--out={} is one of the measurements\n  give the fabric another name", path));
}

void write(const std::string& path, const std::string& text, bool force) {
  if (!force && std::filesystem::exists(path)) refuse(fmt::format("{} exists already\n  --force overwrites it", path));
  std::ofstream out(path);
  out << text;
  if (!out.flush())
    throw InputError(ExitCode::bad_input, fmt::format("{}: cannot be written; check folder and space", path));
}

constexpr double as_good_pct = 1;  // least squares may give the median a little more

void expect_better(const FittedFabric& fitted, bool force) {
  if (force || fitted.error_after_pct <= fitted.error_before_pct + as_good_pct) return;
  throw InputError(ExitCode::outside,
                   fmt::format("the fit is worse than what the cluster has: median error {:.1f} % with it, {:.1f} % "
                               "before; nothing is written\n  expected: sizes from small to large, each measured with "
                               "warm-up; keep the cluster's fabric, or --force writes the fit all the same",
                               fitted.error_after_pct, fitted.error_before_pct));
}

}  // namespace

int import_nccl(int argc, const char* const* argv) {
  Config config = keys();
  config.parse(argc, argv);
  if (answered(config)) return 0;
  const auto where = config.get<std::string>("machine.cluster"), out = config.get<std::string>("out");
  if (where.empty())
    refuse("machine.cluster is not set: NCCL's own estimate depends on it\n  see sim/machines/clusters");
  if (out.empty()) refuse("--out is not set\n  expected: the fabric file to write");
  expect_no_input(out, config.arguments());
  const Cluster cluster = read_cluster(where);
  const auto points = points_of(config, cluster);
  const bool across = layout_of(cluster, points[0].group).nodes > 1;
  std::vector<std::string> files;
  for (const std::string& path : config.arguments()) files.push_back(std::filesystem::path(path).filename().string());
  const auto name = config.get<std::string>("name");
  const FittedFabric fitted =
      fit_fabric(cluster, points, name.empty() ? (across ? cluster.fabric : cluster.intra).name + ", measured" : name,
                 fmt::format("measured by nccl-tests ({}), fitted by import-nccl", fmt::join(files, ", ")));
  expect_better(fitted, config.get<bool>("force"));
  write(out, to_json(fitted.fabric), config.get<bool>("force"));
  fmt::print(
      "{} points of {}: median error {:.1f} % before, {:.1f} % with {}\n"
      "floor {:.1f} us, efficiency {:.3f}; name it as \"{}\" in the JSON file of a cluster\n",
      points.size(), fmt::join(files, ", "), fitted.error_before_pct, fitted.error_after_pct, out,
      fitted.fabric.floor_s.value * 1e6, fitted.fabric.efficiency.value, across ? "fabric" : "intra");
  return 0;
}

}  // namespace foreshard::sim::network
