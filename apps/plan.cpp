// foreshard-plan: builds the plan of a training run and predicts its step, on machines one need not have. Starts no
// MPI.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/config.hpp"
#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/run_main.hpp"
#include "base/text.hpp"
#include "plan/build.hpp"
#include "plan/print.hpp"
#include "plan/settings.hpp"
#include "sim/allocator/replay_command.hpp"
#include "sim/catalogue_command.hpp"
#include "sim/measured_cluster.hpp"
#include "sim/network/collective_command.hpp"
#include "sim/network/import_command.hpp"
#include "sim/planner/extended_report.hpp"
#include "sim/planner/search_command.hpp"
#include "sim/planner/what_if.hpp"
#include "sim/predict.hpp"
#include "sim/predicted_trace.hpp"
#include "sim/report.hpp"
#include "sim/runtimes/command.hpp"
#include "sim/runtimes/foreign_keys.hpp"
#include "sim/runtimes/torch_job.hpp"
#include "sim/validation/command.hpp"

namespace {

using namespace foreshard;

Config keys() {
  Config config("foreshard-plan", "Predicts one step of fully sharded training: time, memory, communication.");
  config.example("foreshard-plan --model.preset=gpt2-xl --parallel.world_size=512");
  config.example("foreshard-plan --model.preset=gpt2-xl --parallel.world_size=64 --machine.cluster=aws-p5");
  config.example(
      "foreshard-plan --model.preset=llama3-8b --parallel.world_size=64 --machine.cluster=aws-p5 "
      "--runtime.profile=pytorch-fsdp2 --precision.param=bf16");
  config.example("foreshard-plan search --help");
  config.example("foreshard-plan --parallel.world_size=2 --machine.file=machine.json --trace=predicted.h5");
  plan::add_plan_keys(config);
  config.add("parallel.world_size", 1, "ranks of the run", {.min = 1, .max = 1 << 24});
  config.add("machine.file", "",
             "machine file of foreshard-calibrate, of processor cores or of GPUs (--device=cuda); without one, a "
             "generic machine is assumed");
  config.add(
      "machine.cluster", "",
      "predict on a cluster of GPUs: its name (`foreshard-plan catalogue` lists them), or a JSON file of that form");
  config.add("runtime.profile", "",
             "whose runtime: foreshard-cpu, the default without a cluster, foreshard-cuda, the default with one, or "
             "PyTorch's DDP or FSDP, or DeepSpeed's ZeRO, around Hugging Face's eager modules",
             {.choices = {"", "foreshard-cpu", "foreshard-cuda", "pytorch-ddp", "pytorch-fsdp1", "pytorch-fsdp2",
                          "deepspeed-zero1", "deepspeed-zero2", "deepspeed-zero3"}});
  sim::torch::add_torch_keys(config);
  config.add("machine.cores", 8, "cores of a node of the generic machine", {.min = 1});
  config.add("machine.ranks_per_node", 0,
             "ranks on one node; 0 = its cores, or what calibration ran if that is more; of GPUs, as many as it saw",
             {.min = 0});
  config.add("engine.threads", 0, "compute threads of a rank; 0 = cores of the node / its ranks", {.min = 0});
  config.ignore({"data.", "model.weights", "run.", "train.", "optimizer.", "lr_scheduler.", "trace.", "metrics.",
                 "validation.", "comm.", "checkpoint.", "engine.", "search."});
  config.add("json", false, "print one JSON object");
  sim::planner::add_report_options(config);
  config.add("explain-memory", false, "PyTorch's runtimes: explain the peak of memory, and what would lower it");
  config.add("order", false, "print the order of collectives and compute of the steady step");
  config.add("step", 0, "which step, 1 = the first; they differ where some leave parameters out; 0 = one that uses all",
             {.min = 0});
  config.add("print-plan", false, "print every op of the plan");
  config.add("trace", "", "write the predicted step to this file, as HDF5");
  config.add("force", false, "overwrite the trace file");
  return config;
}

sim::Machine machine_of(const Config& config) {
  const auto file = config.get<std::string>("machine.file");
  return file.empty() ? sim::generic_machine(config.get<int>("machine.cores")) : sim::read_machine(file);
}

void note_what_is_assumed(const Config& config) {
  if (config.get<std::string>("machine.file").empty() && config.get<std::string>("machine.cluster").empty())
    fmt::print(stderr, "no machine.file: a generic machine is assumed; measure yours with foreshard-calibrate\n");
}

sim::Layout layout_of(const Config& config, const sim::Machine& machine) {
  const int world_size = config.get<int>("parallel.world_size"), asked = config.get<int>("machine.ranks_per_node");
  const int ranks = asked > 0 ? std::min(asked, world_size) : sim::ranks_per_node(machine, world_size);
  const int threads = config.get<int>("engine.threads");
  return {ranks, threads > 0 ? threads : std::max(1, machine.cores / ranks)};
}

std::string command_line(int argc, char** argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) line += (i > 0 ? " " : "") + std::string(argv[i]);
  return line;
}

void write_trace(const Config& config, int argc, char** argv, const sim::Prediction& prediction,
                 const plan::Plan& plan) {
  const auto path = config.get<std::string>("trace");
  if (path.empty()) return;
  trace::RunInfo run;
  run.run_id = "predicted";
  run.command_line = command_line(argc, argv);
  run.config_json = json_text(config.to_json(), -1);
  sim::write_trace(path, run, prediction, plan, config.get<bool>("force"));
}

/// The machine file, if it is of GPUs.
std::optional<sim::Machine> measured_gpus(const Config& config) {
  const auto file = config.get<std::string>("machine.file");
  if (file.empty()) return std::nullopt;
  sim::Machine machine = sim::read_machine(file);
  return machine.gpu ? std::optional(std::move(machine)) : std::nullopt;
}

sim::Machine laid_out(const Config& config, sim::Machine gpus) {
  if (const int asked = config.get<int>("machine.ranks_per_node"); asked > 0) gpus.gpu->per_node = asked;
  return gpus;
}

/// A runtime and a machine of different kinds are refused, and so are a cluster and processor cores.
void expect_one_machine(const Config& config, bool on_gpus, bool measured_gpus) {
  const auto cluster = config.get<std::string>("machine.cluster"), runtime = config.get<std::string>("runtime.profile");
  const auto file = config.get<std::string>("machine.file");
  if (!cluster.empty() && !file.empty() && !measured_gpus)
    throw InputError(ExitCode::usage,
                     "machine.cluster and machine.file are both set: a prediction is for one of them, unless the file "
                     "is of the cluster's GPUs\n  remove one of the two");
  if (!runtime.empty() && (runtime == "foreshard-cuda") != on_gpus)
    throw InputError(ExitCode::usage,
                     fmt::format("runtime.profile = {} does not run on machine.cluster = \"{}\", machine.file = "
                                 "\"{}\"\n  expected: foreshard-cuda with a cluster or a file of GPUs, foreshard-cpu "
                                 "without",
                                 runtime, cluster, file));
}

/// The cluster, if the plan is to run on GPUs.
std::optional<sim::Cluster> read_cluster(const Config& config) {
  const auto name = config.get<std::string>("machine.cluster");
  const auto gpus = measured_gpus(config);
  expect_one_machine(config, !name.empty() || gpus, gpus.has_value());
  if (name.empty() && !gpus) return std::nullopt;
  if (name.empty()) return sim::measured_cluster(laid_out(config, *gpus));
  sim::Cluster cluster = sim::read_cluster(name);
  if (gpus) cluster = sim::measured_cluster(std::move(cluster), *gpus, config.get<std::string>("machine.file"));
  sim::planner::expect_room(cluster, config.get<int>("parallel.world_size"));
  return cluster;
}

sim::Prediction predict(const Config& config, const plan::Plan& plan) {
  if (const auto cluster = read_cluster(config)) return sim::predict_on_gpus(plan, *cluster);
  const sim::Machine machine = machine_of(config);
  return sim::predict(plan, machine, layout_of(config, machine));
}

void print_prediction(const Config& config, int argc, char** argv, const plan::Settings& settings,
                      const plan::Plan& plan) {
  note_what_is_assumed(config);
  const auto cluster = read_cluster(config);
  const sim::Machine machine = cluster ? sim::Machine{} : machine_of(config);
  const sim::Subject subject{plan, machine, layout_of(config, machine), settings.model_source};
  const sim::Prediction prediction =
      cluster ? sim::predict_on_gpus(plan, *cluster) : sim::predict(plan, machine, subject.layout);
  write_trace(config, argc, argv, prediction, plan);
  std::string report =
      config.get<bool>("json") ? sim::report_json(prediction, subject) : sim::report_text(prediction, subject);
  fmt::print("{}", sim::planner::extended(std::move(report), config, settings, plan, prediction,
                                          cluster ? &*cluster : nullptr));
  if (cluster) sim::planner::expect_fit(settings, prediction, *cluster);
}

/// The settings of one kind of step.
plan::Settings read_settings(const Config& config) {
  plan::Settings settings = plan::read_settings(config, config.get<int>("parallel.world_size"));
  const auto step = config.get<std::int64_t>("step");
  settings.schedule.left_out = settings.partial.kinds()[step > 0 ? settings.partial.kind_of(step) : 0];
  return read_cluster(config) ? settings.on_cuda() : settings;
}

plan::Plan plan_of(const plan::Settings& settings) {
  return plan::build_plan(model::build(settings.model, settings.batch), settings.mesh, settings.schedule);
}

void expect_a_table_alone(const Config& config) {
  for (const char* key : {"trace", "tokens"})
    if (!config.get<std::string>(key).empty())
      throw InputError(ExitCode::usage, fmt::format("--what-if and --{} are both set: the first prints a table and no "
                                                    "more\n  leave one of them out",
                                                    key));
  if (config.get<bool>("explain"))
    throw InputError(ExitCode::usage, "--what-if and --explain are both set\n  leave one of them out");
}

void print_what_if(const Config& config, int argc, char** argv) {
  expect_a_table_alone(config);
  note_what_is_assumed(config);
  const auto asked = sim::planner::read_what_if(config, config.get<std::string>("what-if"));
  const auto predict_with = [&](const std::string& flag) {
    std::vector<const char*> arguments(argv, argv + argc);
    if (!flag.empty()) arguments.push_back(flag.c_str());
    Config changed = keys();
    changed.parse(static_cast<int>(arguments.size()), arguments.data());
    return predict(changed, plan_of(read_settings(changed)));
  };
  const auto value = config.get<std::string>(asked.key);
  const bool named = value != "0" || !config.is_default(asked.key);  // 0 stands for what others decide
  fmt::print("{}", what_if_report(asked, named ? value : "default", predict_with, config.get<bool>("json")));
}

/// The commands beside the prediction itself.
struct Command {
  const char* name;
  int (*run)(int argc, const char* const* argv);
};
constexpr Command commands[] = {
    {"validate", sim::validation::validate_command}, {"search", sim::planner::search_command},
    {"catalogue", sim::catalogue_command},           {"collective", sim::network::collective_command},
    {"import-nccl", sim::network::import_nccl},      {"replay-memory", sim::allocator::replay_memory}};

void predict_plan(const Config& config, int argc, char** argv) {
  const plan::Settings settings = read_settings(config);
  for (const std::string& note : settings.model_source.notes) fmt::print(stderr, "note: {}\n", note);
  if (!config.get<std::string>("machine.cluster").empty()) fmt::print(stderr, "{}", sim::planner::types_note(config));
  const plan::Plan plan = plan_of(settings);
  const bool order = config.get<bool>("order"), ops = config.get<bool>("print-plan");
  if (order) fmt::print("{}\n", plan::order_text(plan));
  if (ops) fmt::print("{}", plan::plan_text(plan));
  if (!order && !ops) print_prediction(config, argc, argv, settings, plan);
}

/// The one that the first argument names, if any.
const Command* command_of(int argc, char** argv) {
  const auto found =
      argc < 2 ? std::end(commands)
               : std::ranges::find(commands, argv[1], [](const Command& c) { return std::string_view(c.name); });
  return found == std::end(commands) ? nullptr : found;
}

void expect_a_command(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const Command& command : commands) names.emplace_back(command.name);
  throw InputError(ExitCode::usage, fmt::format("`{}` is no command; expected one of {}, or options alone.{}", argv[1],
                                                fmt::join(names, ", "), did_you_mean(argv[1], names)));
}

int run(int argc, char** argv) {
  if (const Command* command = command_of(argc, argv)) return command->run(argc - 1, argv + 1);
  expect_a_command(argc, argv);
  Config config = keys();
  config.parse(argc, argv);
  if (answered(config)) return 0;
  const bool torch = sim::torch::is_asked_for(config);
  if (config.get<bool>("explain-memory") && !torch)
    throw InputError(
        ExitCode::usage,
        "--explain-memory explains PyTorch's memory\n  set runtime.profile to one of pytorch-* or deepspeed-*");
  const auto profile = config.get<std::string>("runtime.profile");
  sim::torch::refuse_foreign_keys(config, std::array<std::string_view, 1>{profile});
  if (torch)
    sim::torch::run_command(config, command_line(argc, argv));
  else if (!config.get<std::string>("what-if").empty())
    print_what_if(config, argc, argv);
  else
    predict_plan(config, argc, argv);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Command* command = command_of(argc, argv);
  const std::string program = command ? fmt::format("foreshard-plan {}", command->name) : "foreshard-plan";
  return foreshard::run_main(program, [&] { return run(argc, argv); });
}
