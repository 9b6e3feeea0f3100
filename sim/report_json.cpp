#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "sim/report.hpp"
#include "sim/report_gpu.hpp"

namespace foreshard::sim {
namespace {

using Json = nlohmann::ordered_json;

Json memory_by_class(const trace::MemoryPoint& peak) {
  Json json;
  for (std::size_t i = 0; i < peak.bytes.size(); ++i)
    json[std::string(plan::name_of(static_cast<plan::MemoryClass>(i)))] = peak.bytes[i];
  return json;
}

Json busy_by_lane(const Prediction& prediction) {
  Json json;
  for (std::size_t i = 0; i < prediction.lane_busy_s.size(); ++i)
    json[std::string(plan::name_of(static_cast<plan::Lane>(i)))] = prediction.lane_busy_s[i];
  return json;
}

Json json_of(const trace::CollectiveTotal& total) {
  return {{"count", total.count}, {"bytes", total.payload_bytes}, {"received_bytes", total.received_bytes}};
}

Json json_of(const trace::Collectives& all) {
  return {{"all_gather", json_of(all.all_gather)},
          {"reduce_scatter", json_of(all.reduce_scatter)},
          {"all_reduce", json_of(all.all_reduce)}};
}

Json peak_place(const Prediction& prediction, const plan::Plan& plan) {
  if (!prediction.peak_op.valid()) return nullptr;
  const plan::Op& op = plan.ops[prediction.peak_op.value];
  return {{"op", prediction.peak_op.value},
          {"kind", model::name_of(op.kind)},
          {"unit", op.unit.valid() ? Json(plan.unit_names[op.unit.value]) : Json()},
          {"time_s", 1e-9 * static_cast<double>(prediction.peak.time_ns)}};
}

Json json_of(const model::Source& model) {
  return {{"family", model.family}, {"source", model.from}, {"notes", model.notes}};
}

Json json_of(const Machine& machine, const Layout& layout) {
  return {{"name", machine.name},
          {"date", machine.date},
          {"cores", machine.cores},
          {"ranks_per_node", layout.ranks_per_node},
          {"threads", layout.threads}};
}

}  // namespace

std::string report_json(const Prediction& prediction, const Subject& subject) {
  const plan::Plan& plan = subject.plan;
  Json json{{"schema", 1},
            {"model", json_of(subject.model)},
            {"parameters", plan.parameters},
            {"world_size", plan.mesh.world_size()},
            {"shard_degree", plan.mesh.shard_degree()},
            {"micro_batches", plan.micro_batches},
            {"tokens_per_rank", plan.micro_batch_tokens * plan.micro_batches},
            {"plan_hash", fmt::format("{:016x}", plan::hash_of(plan))},
            {"arena_bytes", prediction.arena_bytes},
            {"host_arena_bytes", prediction.host_arena_bytes},
            {"memory_peak_bytes", prediction.peak.total()},
            {"memory_at_peak_bytes", memory_by_class(prediction.peak)},
            {"memory_peak_at", peak_place(prediction, plan)},
            {"process_base_bytes", prediction.process_base_bytes},
            {"rss_bytes", prediction.rss_bytes},
            {"step_time_s", prediction.step_time_s},
            {"lane_busy_s", busy_by_lane(prediction)},
            {"exposed_comm_s", prediction.exposed_comm_s},
            {"model_flops", prediction.model_flops},
            {"tflops_per_device", prediction.tflops_per_device},
            {"collectives", json_of(prediction.collectives)},
            {"machine", json_of(subject.machine, subject.layout)},
            {"sources", prediction.sources}};
  if (prediction.gpu) {
    json.erase("machine");
    json.erase("rss_bytes");
    json["gpu"] = gpu_json(prediction, plan);
  }
  return json_text(json) + "\n";
}

}  // namespace foreshard::sim
