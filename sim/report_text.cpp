#include <fmt/format.h>

#include "base/units.hpp"
#include "sim/report.hpp"
#include "sim/report_gpu.hpp"

namespace foreshard::sim {
namespace {

std::string machine_line(const Subject& subject) {
  return fmt::format("machine {}: {} cores, {} ranks a node, {} {} each\n", subject.machine.name, subject.machine.cores,
                     subject.layout.ranks_per_node, subject.layout.threads,
                     subject.layout.threads == 1 ? "thread" : "threads");
}

std::string model_line(const model::Source& model) {
  return model.from.empty() ? "" : fmt::format("model {} of {}\n", model.family, model.from);
}

std::string header(const Prediction& prediction, const Subject& subject) {
  const plan::Plan& plan = subject.plan;
  return model_line(subject.model) +
         fmt::format("{} parameters on {} ranks, shard degree {}, {} tokens a step\n{}\n", count_text(plan.parameters),
                     plan.mesh.world_size(), plan.mesh.shard_degree(),
                     count_text(plan.micro_batch_tokens * plan.micro_batches * plan.mesh.world_size()),
                     prediction.gpu ? gpu_header(prediction) : machine_line(subject));
}

std::string memory_line(std::string_view name, std::int64_t bytes) {
  return fmt::format("  {:<22}{:>12}\n", name, bytes_text(bytes));
}

std::string peak_place(const Prediction& prediction, const Subject& subject) {
  if (!prediction.peak_op.valid()) return "at the start";
  const plan::Op& op = subject.plan.ops[prediction.peak_op.value];
  const std::string_view unit = op.unit.valid() ? std::string_view(subject.plan.unit_names[op.unit.value]) : "no unit";
  return fmt::format("in {} of {}", model::name_of(op.kind), unit);
}

std::string memory(const Prediction& prediction, const Subject& subject) {
  const std::int64_t live = prediction.peak.total();
  std::string text = fmt::format("memory of a rank at its peak, {}\n", peak_place(prediction, subject));
  for (std::size_t i = 0; i < prediction.peak.bytes.size(); ++i)
    text += memory_line(plan::name_of(static_cast<plan::MemoryClass>(i)), prediction.peak.bytes[i]);
  text += memory_line("gaps", prediction.arena_bytes - live);
  text += memory_line("arena", prediction.arena_bytes);
  if (prediction.host_arena_bytes > 0) text += memory_line("host arena", prediction.host_arena_bytes);
  if (prediction.gpu)
    return text + memory_line("context, communicators", prediction.process_base_bytes) + gpu_fit(prediction) + "\n";
  text += memory_line("process besides", prediction.process_base_bytes);
  return text + memory_line("resident", prediction.rss_bytes) + "\n";
}

/// Nobody published runs on processor cores.
std::string error_bar(const Prediction& prediction, const Subject& subject) {
  if (prediction.gpu) return "  " + text_of(step_time_error_bar(prediction, subject.plan)) + "\n";
  return "  no error bar: no published runs on such machines; foreshard-compare says how far off a run of yours is\n";
}

std::string times(const Prediction& prediction, const Subject& subject) {
  std::string text = fmt::format("step {}, {:.4g} TFLOP/s a rank\n", duration_text(prediction.step_time_s),
                                 prediction.tflops_per_device) +
                     error_bar(prediction, subject);
  for (int i = 0; i < plan::lane_count; ++i) {
    const double busy = prediction.lane_busy_s[static_cast<std::size_t>(i)];
    if (busy > 0)
      text += fmt::format("  {:<22}{:>12}{:>7.1f} %\n", plan::name_of(static_cast<plan::Lane>(i)), duration_text(busy),
                          100 * busy / prediction.step_time_s);
  }
  return text + fmt::format("  {:<22}{:>12}{:>7.1f} %\n\n", "exposed communication",
                            duration_text(prediction.exposed_comm_s),
                            100 * prediction.exposed_comm_s / prediction.step_time_s);
}

std::string collective(std::string_view name, const trace::CollectiveTotal& total) {
  if (total.count == 0) return "";
  return fmt::format("  {:<22}{:>12}{:>14} of buffers{:>14} received\n", name, total.count,
                     bytes_text(static_cast<std::int64_t>(total.payload_bytes)),
                     bytes_text(static_cast<std::int64_t>(total.received_bytes)));
}

std::string collectives(const trace::Collectives& all) {
  return "collectives of a rank in a step\n" + collective("all_gather", all.all_gather) +
         collective("reduce_scatter", all.reduce_scatter) + collective("all_reduce", all.all_reduce) + "\n";
}

std::string sources(const std::set<std::string>& all) {
  std::string text = "numbers used\n";
  for (const std::string& source : all) text += fmt::format("  {}\n", source);
  return text;
}

}  // namespace

std::string report_text(const Prediction& prediction, const Subject& subject) {
  return header(prediction, subject) + memory(prediction, subject) + times(prediction, subject) +
         (prediction.gpu ? gpu_utilization(prediction) : "") + collectives(prediction.collectives) +
         (prediction.gpu ? gpu_sources(prediction) : "") + sources(prediction.sources);
}

}  // namespace foreshard::sim
