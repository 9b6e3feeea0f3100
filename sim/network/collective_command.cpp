#include "sim/network/collective_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/run_main.hpp"
#include "sim/network/sweep.hpp"

namespace foreshard::sim::network {
namespace {

using model::OpKind;

Config keys() {
  Config config("foreshard-plan collective",
                "Predicts single collectives on GPUs, by NCCL's own model, as nccl-tests "
                "measures them.");
  config.example("foreshard-plan collective --machine.cluster=aws-p5 --op=all_gather --bytes=1M:4G --ranks=64");
  config.add("machine.cluster", "", "the cluster: its name in the catalogue, or a JSON file of that form");
  config.add("op", "all_gather", "what is timed", {.choices = {"all_gather", "reduce_scatter", "all_reduce"}});
  config.add("bytes", "1M:1G", "sizes of the whole buffer: 4K,1.5M,2GB, or FROM:TO, which doubles");
  config.add("ranks", 8, "GPUs that take part", {.min = 2, .max = 1 << 24});
  config.add("machine.ranks_per_node", 0, "of these on a node; 0 = all that fit", {.min = 0});
  config.add("json", false, "print one JSON object");
  config.ignore({"model.",     "parallel.",   "activation_checkpoint.",
                 "precision.", "offload.",    "units.",
                 "engine.",    "data.",       "run.",
                 "train.",     "optimizer.",  "lr_scheduler.",
                 "trace.",     "metrics.",    "validation.",
                 "comm.",      "checkpoint.", "runtime.",
                 "machine.",   "torch.",      "deepspeed.",
                 "search."});
  return config;
}

OpKind kind_of(const std::string& name) {
  for (const OpKind kind : {OpKind::all_gather, OpKind::reduce_scatter})
    if (model::name_of(kind) == name) return kind;
  return OpKind::all_reduce;
}

Cluster cluster_of(const Config& config) {
  const auto name = config.get<std::string>("machine.cluster");
  if (name.empty())
    throw InputError(ExitCode::usage,
                     "machine.cluster is not set\n  expected: the cluster that the collective runs on, e.g. "
                     "--machine.cluster=aws-p5");
  return read_cluster(name);
}

Group group_of(const Config& config, const Cluster& cluster) {
  const int ranks = config.get<int>("ranks"), asked = config.get<int>("machine.ranks_per_node");
  const int per_node = std::min(ranks, asked > 0 ? asked : cluster.gpus_per_node);
  if (per_node > cluster.gpus_per_node || ranks % per_node != 0)
    throw InputError(
        ExitCode::usage,
        fmt::format("{} ranks, {} a node, on nodes of {} GPUs\n  expected: full nodes, equally many on each", ranks,
                    per_node, cluster.gpus_per_node));
  return {ranks, per_node, 1};
}

}  // namespace

int collective_command(int argc, const char* const* argv) {
  Config config = keys();
  config.parse(argc, argv);
  if (answered(config)) return 0;
  const Cluster cluster = cluster_of(config);
  const Group group = group_of(config, cluster);
  const auto op = config.get<std::string>("op");
  const auto rows = sweep(cluster, kind_of(op), group, parse_sizes(config.get<std::string>("bytes")));
  if (config.get<bool>("json")) {
    const nlohmann::ordered_json json{{"schema", 1},
                                      {"cluster", cluster.name},
                                      {"op", op},
                                      {"ranks", group.ranks},
                                      {"ranks_per_node", group.ranks_per_node},
                                      {"sizes", sweep_json(rows)}};
    fmt::print("{}\n", json_text(json));
  } else {
    fmt::print("{} among {} ranks, {} a node: {}, {}; bandwidths in GB/s\n{}", op, group.ranks, group.ranks_per_node,
               cluster.name, cluster.device.name, sweep_text(rows));
  }
  return 0;
}

}  // namespace foreshard::sim::network
