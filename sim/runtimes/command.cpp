#include "sim/runtimes/command.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "sim/planner/extended_report.hpp"
#include "sim/runtimes/recorded_memory.hpp"
#include "sim/runtimes/runtime_names.hpp"
#include "sim/runtimes/torch_report.hpp"

namespace foreshard::sim::torch {
namespace {

Cluster cluster_of(const Config& config) {
  const auto name = config.get<std::string>("machine.cluster");
  if (name.empty() || !config.get<std::string>("machine.file").empty())
    throw InputError(ExitCode::usage,
                     fmt::format("runtime.profile = {} runs on GPUs: expected machine.cluster, a name of the catalogue "
                                 "such as dgx-h100 or a JSON file of that form, and no machine.file",
                                 config.get<std::string>("runtime.profile")));
  return read_cluster(name);
}

void refuse_plan_options(const Config& config) {
  const bool explains = config.get<bool>("explain");
  if (explains || !config.get<std::string>("what-if").empty())
    throw InputError(ExitCode::usage, fmt::format("--{}: only for our own runtimes\n  PyTorch's have --explain-memory",
                                                  explains ? "explain" : "what-if"));
  if (config.get<std::int64_t>("step") > 0)
    throw InputError(ExitCode::usage,
                     "--step: PyTorch's steps leave nothing out, so that all are alike\n  leave it out");
  if (config.get<bool>("print-plan"))
    throw InputError(ExitCode::usage,
                     "--print-plan: PyTorch has no plan of ours; take --order for what it issues, or --trace");
}

void keep_trace(const Config& config, const std::string& command_line, const TorchPrediction& prediction,
                const TorchJob& job) {
  const auto path = config.get<std::string>("trace");
  if (path.empty()) return;
  if (!prediction.out_of_memory.empty())
    throw InputError(ExitCode::infeasible,
                     fmt::format("--trace={}: the run does not fit its device, so there is no step to write\n  leave "
                                 "--trace out to see what is missing",
                                 path));
  const trace::RunInfo run{
      .run_id = "predicted", .command_line = command_line, .config_json = json_text(config.to_json(), -1)};
  write_trace(path, run, prediction, job, config.get<bool>("force"));
}

void print_peak(const Config& config, const TorchJob& job, const Cluster& cluster) {
  const allocator::PeakReport report = explain_memory(job, cluster);
  fmt::print("{}", config.get<bool>("json") ? json_text(to_json(report), 1) + "\n" : report.text());
}

}  // namespace

bool is_asked_for(const Config& config) {
  return runtime_named(config.get<std::string>("runtime.profile")).has_value();
}

void run_command(const Config& config, const std::string& command_line) {
  const Cluster cluster = cluster_of(config);
  refuse_plan_options(config);
  const plan::Settings settings = plan::read_settings(config, config.get<int>("parallel.world_size"));
  for (const std::string& note : settings.model_source.notes) fmt::print(stderr, "note: {}\n", note);
  fmt::print(stderr, "{}", planner::types_note(config));
  const TorchJob job = read_torch_job(config, settings);
  const TorchPrediction prediction = predict(job, cluster);
  if (config.get<bool>("explain-memory")) {
    print_peak(config, job, cluster);
    return planner::expect_fit(settings, job, prediction, cluster);
  }
  keep_trace(config, command_line, prediction, job);
  if (config.get<bool>("order"))
    fmt::print("{}\n", order_text(prediction.ran, prediction.micro_batch_starts));
  else
    fmt::print("{}", planner::with_run(config.get<bool>("json") ? report_json(prediction, job, cluster)
                                                                : report_text(prediction, job, cluster),
                                       config, settings, prediction));
  planner::expect_fit(settings, job, prediction, cluster);
}

}  // namespace foreshard::sim::torch
