#include "train/run_results.hpp"

#include <fmt/format.h>

#include <cmath>

namespace foreshard::train {
namespace {

nlohmann::json json_of(const trace::CollectiveTotal& total) {
  return {{"count", total.count}, {"bytes", total.payload_bytes}, {"received_bytes", total.received_bytes}};
}

nlohmann::json json_of(double seconds) { return std::isfinite(seconds) ? nlohmann::json(seconds) : nlohmann::json(); }

}  // namespace

void add_results(RunRecord& record, const plan::Plan& plan, const trace::Summary& measured) {
  record["parameters"] = plan.parameters;
  record["world_size"] = plan.mesh.world_size();
  record["shard_degree"] = plan.mesh.shard_degree();
  record["plan_hash"] = fmt::format("{:016x}", plan::hash_of(plan));
  record["arena_bytes"] = measured.arena_bytes;
  record["arena_touched_bytes"] = measured.arena_touched_bytes;
  record["host_arena_bytes"] = measured.host_arena_bytes;
  record["rss_bytes"] = measured.rss_bytes;
  record["base_rss_bytes"] = measured.base_rss_bytes;
  record["step_time_s"] = measured.step_time_s;
  record["tflops_per_device"] = measured.tflops_per_device;
  record["exposed_comm_s"] = json_of(measured.exposed_comm_s);
  record["collectives"] = {{"all_gather", json_of(measured.collectives.all_gather)},
                           {"reduce_scatter", json_of(measured.collectives.reduce_scatter)},
                           {"all_reduce", json_of(measured.collectives.all_reduce)}};
}

}  // namespace foreshard::train
