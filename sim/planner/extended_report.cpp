#include "sim/planner/extended_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/units.hpp"
#include "sim/masked_flops.hpp"
#include "sim/planner/explain.hpp"
#include "sim/planner/remedies.hpp"
#include "sim/planner/run_cost.hpp"
#include "sim/planner/torch_runtime.hpp"

namespace foreshard::sim::planner {
namespace {

/// What is added to a report.
struct Additions {
  std::optional<Explanation> explanation;
  std::optional<RunCost> run;
  std::optional<Utilization> done;  ///< without what is masked
  std::string note;
};

std::optional<Explanation> explanation_of(const Config& config, const plan::Settings& settings, const plan::Plan& plan,
                                          const Prediction& prediction, const Cluster* cluster) {
  if (!config.get<bool>("explain")) return std::nullopt;
  if (!cluster)
    throw InputError(ExitCode::usage,
                     "--explain takes a step on GPUs apart, but there is no machine.cluster\n  set machine.cluster");
  return explain(settings, plan, prediction, *cluster);
}

std::optional<RunCost> cost_of(const Config& config, const plan::Settings& settings, const Prediction& prediction) {
  const RunLength run = read_run_length(config);
  if (run.tokens == 0) return std::nullopt;
  return run_cost(run, prediction.step_time_s, static_cast<double>(settings.step_tokens()), settings.mesh.world_size());
}

double part_of_peak(const Prediction& prediction, double flops) {
  return flops_utilization(flops, prediction.step_time_s, prediction.gpu->peak_flops_per_s);
}

std::optional<Utilization> done(const Prediction& prediction, const plan::Plan& plan) {
  if (!prediction.gpu) return std::nullopt;
  const double flops = prediction.model_flops - masked_flops(plan);
  return Utilization{flops / prediction.step_time_s, part_of_peak(prediction, flops)};
}

std::string note_of(const Prediction& prediction, const plan::Plan& plan) {
  if (!prediction.gpu) return "";
  return masked_note(prediction.model_flops, masked_flops(plan), part_of_peak(prediction, prediction.model_flops));
}

std::string as_text(std::string report, const Additions& all, const plan::Settings& settings, const plan::Plan& plan) {
  if (all.explanation) report += "\n" + explanation_text(*all.explanation, settings, plan);
  if (all.run) report += "\n" + text_of(*all.run);
  if (!all.note.empty()) report += "\n" + all.note;
  if (all.done && !all.done->is_plausible()) report += "\n" + warning_text(*all.done);
  return report;
}

std::string as_json(const std::string& report, const Additions& all) {
  auto json = nlohmann::ordered_json::parse(report);
  if (all.explanation) json["explanation"] = explanation_json(*all.explanation);
  if (all.run) json["run"] = json_of(*all.run);
  if (all.done) json["gpu"]["plausible"] = all.done->is_plausible();
  if (all.done) json["gpu"]["part_of_peak_without_masked"] = all.done->part;
  return json_text(json) + "\n";
}

std::string failed_at(const torch::TorchPrediction& prediction) {
  if (prediction.saves) return "to save a checkpoint";
  return prediction.failed_step == 0 ? "to make the model" : fmt::format("for step {}", prediction.failed_step);
}

/// What steps need nothing of: how the model comes to its device, and what is saved. Empty where a step is the trouble.
std::string_view lean_phase(const torch::TorchJob& job, const torch::TorchPrediction& prediction) {
  if (prediction.saves) return "the steps fit; gather less for the checkpoint: torch.saving=full-to-host or sharded";
  const bool whole = job.loading == allocator::Loading::whole;
  return whole && prediction.failed_step == 0 ? "load shards: torch.loading=sharded" : "";
}

}  // namespace

void add_report_options(Config& config) {
  config.add("explain", false, "say where the step's time goes, and what one changed decision would do (on GPUs)");
  config.add("what-if", "", "compare with other values of a key: --what-if=parallel.limit=2,3,unlimited");
  add_run_options(config);
}

std::string types_note(const Config& config) {
  if (!config.is_default("precision.param")) return "";
  return "note: precision.param not given: fp32, as training does by default; on GPUs precision.param=bf16 is usual\n";
}

std::string extended(std::string report, const Config& config, const plan::Settings& settings, const plan::Plan& plan,
                     const Prediction& prediction, const Cluster* cluster) {
  const Additions all{explanation_of(config, settings, plan, prediction, cluster),
                      cost_of(config, settings, prediction), done(prediction, plan), note_of(prediction, plan)};
  return config.get<bool>("json") ? as_json(report, all) : as_text(std::move(report), all, settings, plan);
}

std::string with_run(std::string report, const Config& config, const plan::Settings& settings,
                     const torch::TorchPrediction& prediction) {
  const RunLength run = read_run_length(config);
  if (run.tokens == 0 || !prediction.out_of_memory.empty()) return report;
  Additions all;
  all.run =
      run_cost(run, prediction.steady.seconds, static_cast<double>(settings.step_tokens()), settings.mesh.world_size());
  return config.get<bool>("json") ? as_json(report, all) : report + "\n" + text_of(*all.run);
}

void expect_fit(const plan::Settings& settings, const Prediction& prediction, const Cluster& cluster) {
  if (prediction.fits()) return;
  TrainingGraphs graphs(settings);
  OwnRuntime runtime(settings, cluster, graphs);
  throw does_not_fit(fmt::format("it needs {} of the {} that a {} has",
                                 bytes_text(prediction.arena_bytes + prediction.process_base_bytes),
                                 bytes_text(prediction.gpu->memory_bytes), cluster.device.name),
                     point_of(settings), cluster, runtime);
}

void expect_fit(const plan::Settings& settings, const torch::TorchJob& job, const torch::TorchPrediction& prediction,
                const Cluster& cluster) {
  if (prediction.out_of_memory.empty()) return;
  const std::string why = fmt::format("the {} that a {} has are not enough {}", bytes_text(prediction.device_bytes),
                                      cluster.device.name, failed_at(prediction));
  if (const auto remedy = lean_phase(job, prediction); !remedy.empty())
    throw InputError(ExitCode::infeasible, fmt::format("this plan does not fit: {}\n  {}", why, remedy));
  TorchFacts facts(job, cluster);
  TorchRuntime runtime(job, cluster, facts);
  throw does_not_fit(why, point_of(settings, job), cluster, runtime);
}

}  // namespace foreshard::sim::planner
