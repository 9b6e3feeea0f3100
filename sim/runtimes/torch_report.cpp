#include "sim/runtimes/torch_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/units.hpp"
#include "sim/hardware_sources.hpp"
#include "sim/runtimes/runtime_names.hpp"
#include "sim/runtimes/torch_fit.hpp"
#include "sim/validation/error_bars.hpp"

namespace foreshard::sim::torch {
namespace {

using Json = nlohmann::ordered_json;

std::string_view runtime_name(const TorchJob& job) { return name_of(job.run.runtime); }

int world_size(const TorchJob& job) { return job.run.wrap.world * job.run.wrap.replicas; }

double flops_per_s(const TorchPrediction& prediction, FlopConvention convention) {
  return flops_per_token(prediction.flops, convention) * prediction.flops.tokens / prediction.steady.seconds;
}

std::string header(const TorchJob& job, const Cluster& cluster) {
  return fmt::format("{} parameters on {} ranks, shard degree {}, {} tokens a step\n{}: {} x {} a node; {}, {}\n\n",
                     count_text(static_cast<std::int64_t>(job.parameters)), world_size(job), job.run.wrap.world,
                     count_text(job.run.batch.tokens() * job.run.micro_batches * world_size(job)), cluster.name,
                     cluster.gpus_per_node, cluster.device.name, runtime_name(job),
                     job.software.compiled ? "compiled" : "eager");
}

std::string line(std::string_view name, const std::string& value) {
  return fmt::format("  {:<26}{:>12}\n", name, value);
}

std::string share(std::string_view name, double part_s, double step_s) {
  return fmt::format("  {:<26}{:>12}{:>7.1f} %\n", name, duration_text(part_s), 100 * part_s / step_s);
}

std::string times(const TorchPrediction& prediction) {
  const StepTimes& t = prediction.steady;
  std::string text = fmt::format("step {:.4g} s, the first one {:.4g} s\n", t.seconds, prediction.first.seconds);
  for (const auto& [name, part] :
       {std::pair{"forward", t.forward_s}, std::pair{"backward", t.backward_s}, std::pair{"update", t.update_s},
        std::pair{"compute stream busy", t.compute_busy_s}, std::pair{"communication", t.communication_busy_s},
        std::pair{"exposed communication", t.exposed_s}, std::pair{"compute waits for the host", t.host_bound_s},
        std::pair{"host waits for the device", t.blocked_s}})
    text += share(name, part, t.seconds);
  return text + "\n";
}

constexpr std::string_view phase_names[] = {"forward", "backward", "update"};

std::string live(const TorchPrediction& prediction) {
  const StepMemory& steady = prediction.memory.steps.back();
  return fmt::format("live bytes of tensors, the peak in {}\n", phase_names[static_cast<int>(steady.peak_in)]) +
         line("before the first step", bytes_text(prediction.memory.initial)) +
         line("peak of the first step", bytes_text(prediction.memory.steps.front().peak)) +
         line("peak of later steps", bytes_text(steady.peak)) + line("between steps", bytes_text(steady.after_step)) +
         "\n";
}

std::string held(std::string_view which, const AllocatorPeaks& peaks) {
  return fmt::format("  {:<16}{:>12}{:>12}{:>12}{:>9}\n", which, bytes_text(peaks.allocated), bytes_text(peaks.active),
                     bytes_text(peaks.reserved), peaks.retries);
}

/// What the allocator held, and whether the device has it.
std::string memory(const TorchPrediction& prediction) {
  std::string text = "peaks in PyTorch's allocator\n";
  text += fmt::format("  {:<16}{:>12}{:>12}{:>12}{:>9}\n", "", "allocated", "active", "reserved", "retries");
  if (!prediction.peaks.empty()) text += held("first step", prediction.peaks.front());
  if (prediction.peaks.size() > 1) text += held("steady step", prediction.peaks.back());
  if (prediction.save) text += held("checkpoint save", *prediction.save);
  text += line("context, communicators", bytes_text(prediction.outside_bytes));
  return text + "  " + verdict_text(prediction) + "\n" + fit_of(prediction).phases_text() + "\n";
}

std::string utilization(const TorchPrediction& prediction) {
  std::string text = "useful work of a GPU, by who counts\n";
  for (const FlopConvention convention : all_flop_conventions())
    text += fmt::format("  {:<22}{:>9.1f} TFLOP/s{:>7.1f} % of peak\n", name_of(convention),
                        flops_per_s(prediction, convention) / 1e12,
                        100 * flops_per_s(prediction, convention) / prediction.peak_flops_per_s);
  return text + "\n";
}

validation::ErrorBar step_bar(const TorchJob& job, const Cluster& cluster) {
  const auto* decoder = std::get_if<Decoder>(&job.run.model);
  return validation::torch_error_bar({.gpu = catalogue_key_of(cluster.device.name),
                                      .style = job.software.compiled ? "compiled" : "eager",
                                      .gated = decoder && decoder->family == Decoder::Family::llama,
                                      .gpus = world_size(job)});
}

std::string error_bars(const TorchJob& job, const Cluster& cluster) {
  return fmt::format("error bars\n  step, TFLOP/s  {}; {}\n  memory         {}, in closed form; {}\n\n",
                     text_of(step_bar(job, cluster)), validation::torch_error_bar_command(),
                     text_of(validation::memory_error_bar(false)), validation::error_bar_command());
}

Json error_bars_json(const TorchJob& job, const Cluster& cluster) {
  return {{"step_time_s", json_of(step_bar(job, cluster))},
          {"reserved_peak_bytes", json_of(validation::memory_error_bar(false))}};
}

std::string lines(std::string_view heading, const auto& all) {
  std::string text = all.empty() ? "" : fmt::format("{}\n", heading);
  for (const std::string& one : all) text += fmt::format("  {}\n", one);
  return text;
}

Json times_json(const StepTimes& t) {
  return {{"step_time_s", t.seconds},           {"forward_s", t.forward_s},
          {"backward_s", t.backward_s},         {"update_s", t.update_s},
          {"compute_busy_s", t.compute_busy_s}, {"communication_busy_s", t.communication_busy_s},
          {"exposed_comm_s", t.exposed_s},      {"host_bound_s", t.host_bound_s},
          {"host_blocked_s", t.blocked_s}};
}

Json memory_json(const StepMemory& m, const AllocatorPeaks& peaks) {
  return {{"allocated_peak_bytes", peaks.allocated},
          {"active_peak_bytes", peaks.active},
          {"reserved_peak_bytes", peaks.reserved},
          {"retries", peaks.retries},
          {"live_peak_bytes", m.peak},
          {"peak_in", phase_names[static_cast<int>(m.peak_in)]},
          {"live_after_forward_bytes", m.after_forward},
          {"live_after_step_bytes", m.after_step}};
}

Json utilization_json(const TorchPrediction& prediction) {
  Json by_convention;
  for (const FlopConvention convention : all_flop_conventions())
    by_convention[std::string(name_of(convention))] = {
        {"tflops_per_device", flops_per_s(prediction, convention) / 1e12},
        {"part_of_peak", flops_per_s(prediction, convention) / prediction.peak_flops_per_s}};
  return by_convention;
}

std::string failed_when(const TorchPrediction& prediction) {
  if (prediction.saves) return "while a checkpoint is saved";
  return prediction.failed_step == 0 ? "while the model is made" : fmt::format("in step {}", prediction.failed_step);
}

}  // namespace

std::string verdict_text(const TorchPrediction& prediction) {
  if (!prediction.out_of_memory.empty())
    return fmt::format("DOES NOT FIT, {}: {}", failed_when(prediction), prediction.out_of_memory);
  const AllocatorPeaks& steady = prediction.peaks.back();
  const std::string needed = bytes_text(steady.reserved + prediction.outside_bytes);
  const std::string of = fmt::format("{} of {}", needed, bytes_text(prediction.device_bytes));
  if (steady.retries > 0)
    return fmt::format("fits only with {} allocation retries a step, each of which waits for the device: {}",
                       steady.retries, of);
  return "fits: " + of;
}

std::string report_text(const TorchPrediction& prediction, const TorchJob& job, const Cluster& cluster) {
  const bool ends = !prediction.out_of_memory.empty();
  return header(job, cluster) + (prediction.memory.steps.empty() ? "" : live(prediction)) + memory(prediction) +
         (ends ? "" : times(prediction) + error_bars(job, cluster) + utilization(prediction)) +
         lines("notes", job.notes) + lines("hardware", hardware_sources(cluster, world_size(job))) +
         lines("numbers used", prediction.sources);
}

std::string report_json(const TorchPrediction& prediction, const TorchJob& job, const Cluster& cluster) {
  Json json{{"schema", 1},
            {"runtime", runtime_name(job)},
            {"cluster", cluster.name},
            {"device", cluster.device.name},
            {"parameters", job.parameters},
            {"world_size", world_size(job)},
            {"shard_degree", job.run.wrap.world},
            {"micro_batches", job.run.micro_batches},
            {"tokens_per_rank", job.run.batch.tokens() * job.run.micro_batches},
            {"device_bytes", prediction.device_bytes},
            {"outside_allocator_bytes", prediction.outside_bytes},
            {"reserved_before_bytes", prediction.reserved_before},
            {"initial_live_bytes", prediction.memory.initial},
            {"fits", prediction.out_of_memory.empty()},
            {"verdict", verdict_text(prediction)},
            {"phases", to_json(fit_of(prediction))["phases"]},
            {"notes", job.notes},
            {"error_bars", error_bars_json(job, cluster)},
            {"hardware", hardware_sources(cluster, world_size(job))},
            {"sources", prediction.sources}};
  if (!prediction.memory.steps.empty()) {
    json["first_step"] = times_json(prediction.first);
    json["first_step_memory"] = memory_json(prediction.memory.steps.front(), prediction.peaks.front());
  }
  if (!prediction.out_of_memory.empty()) return json_text(json) + "\n";
  json["memory"] = memory_json(prediction.memory.steps.back(), prediction.peaks.back());
  json["tokens_per_s_per_device"] = prediction.flops.tokens / prediction.steady.seconds;
  json["utilization"] = utilization_json(prediction);
  json.update(times_json(prediction.steady));
  return json_text(json) + "\n";
}

}  // namespace foreshard::sim::torch
