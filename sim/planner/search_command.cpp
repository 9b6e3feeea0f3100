#include "sim/planner/search_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.hpp"
#include "base/run_main.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "sim/planner/remedies.hpp"
#include "sim/planner/report_search.hpp"
#include "sim/planner/runtimes.hpp"
#include "sim/runtimes/foreign_keys.hpp"

namespace foreshard::sim::planner {
namespace {

Config keys() {
  Config config("foreshard-plan search",
                "Finds the best plans for a model on a cluster of GPUs, for a given global batch, with our own "
                "runtime, PyTorch's or DeepSpeed's.");
  config.example(
      "foreshard-plan search --model.preset=llama3-70b --parallel.world_size=512 --machine.cluster=aws-p5 "
      "--train.global_batch_size=1024");
  config.example(
      "foreshard-plan search --model.preset=llama3-8b --search.gpus=64,128,256 --machine.cluster=dgx-h100 "
      "--train.global_batch_size=512 --search.precision=bf16 --tokens=15T");
  config.example(
      "foreshard-plan search --search.profiles=pytorch-ddp,pytorch-fsdp2,deepspeed-zero3 --model.preset=gpt2-xl "
      "--parallel.world_size=16 --machine.cluster=dgx-a100 --train.global_batch_size=512");
  config.example(
      "foreshard-plan search --runtime.profile=pytorch-fsdp2 --model.preset=llama3-8b --parallel.world_size=64 "
      "--machine.cluster=aws-p5 --train.global_batch_size=512");
  plan::add_plan_keys(config);
  config.add("parallel.world_size", 1, "GPUs of the run", {.min = 1, .max = 1 << 24});
  config.add("machine.cluster", "", "the cluster: its name in the catalogue, or a JSON file of that form");
  config.add("runtime.profile", "foreshard-cuda", "whose runtime",
             {.choices = {"foreshard-cuda", "pytorch-ddp", "pytorch-fsdp1", "pytorch-fsdp2", "deepspeed-zero1",
                          "deepspeed-zero2", "deepspeed-zero3"}});
  config.add("search.profiles", "auto",
             "values of runtime.profile to compare, such as pytorch-fsdp2,deepspeed-zero3; auto = runtime.profile");
  torch::add_torch_keys(config);
  add_space_keys(config);
  config.add("search.threads", 0, "threads; 0 = one for each core", {.min = 0, .max = 1024});
  config.add("search.tolerance", 0.005,
             "plans that can be better than a simulated one by no more than this part are not simulated",
             {.min = 0, .max = 0.5});
  config.add("search.simulations", 0,
             "plans of each profile that are simulated at most, the most promising ones; 0 = 2000, of PyTorch 400",
             {.min = 0});
  config.add("search.rows", 20, "plans of the Pareto set that are shown", {.min = 1});
  config.add("search.all_plans", "", "write what became of every plan into this CSV file");
  config.ignore({"model.weights", "machine.", "data.", "run.", "train.", "optimizer.", "lr_scheduler.", "trace.",
                 "metrics.", "validation.", "comm.", "checkpoint.", "engine."});
  config.add("json", false, "print one JSON object");
  add_run_options(config);
  return config;
}

Cluster cluster_of(const Config& config) {
  const auto name = config.get<std::string>("machine.cluster");
  if (name.empty())
    throw InputError(
        ExitCode::usage,
        "machine.cluster is not set: a search needs to know the GPUs and what connects them\n  set it to a "
        "name of the catalogue, such as aws-p5 or dgx-a100, or to a file");
  return read_cluster(name);
}

/// The plan's settings for all that a search does not decide.
plan::Settings settings_of(const Config& config) {
  if (config.get<std::int64_t>("train.global_batch_size") == 0)
    throw InputError(ExitCode::usage,
                     "train.global_batch_size is not set: plans are compared for one global batch\n  set it to the "
                     "sequences of a step on all GPUs");
  plan::Settings settings = plan::read_settings(config, config.get<int>("parallel.world_size"));
  settings.schedule.left_out = settings.partial.kinds().front();
  return config.get<std::string>("runtime.profile") == "foreshard-cuda" ? settings.on_cuda() : settings;
}

int threads_of(const Config& config) {
  const int asked = config.get<int>("search.threads");
  return asked > 0 ? asked : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

/// Leaves out numbers of GPUs that the cluster does not have.
void fit_to_cluster(Axes& axes, const Cluster& cluster, Space& space) {
  if (cluster.gpus == 0) return;
  std::erase_if(axes.gpus, [&](int gpus) {
    if (gpus <= cluster.gpus) return false;
    space.left_out.push_back(fmt::format("{} GPUs: {} has {}", gpus, cluster.name, cluster.gpus));
    return true;
  });
}

Runtime read_profile(std::string_view word) {
  if (const auto runtime = runtime_named(word)) return *runtime;
  throw InputError(ExitCode::usage,
                   fmt::format("search.profiles: '{}' is no value of runtime.profile that can be searched\n  expected "
                               "some of foreshard-cuda, pytorch-ddp, pytorch-fsdp1, pytorch-fsdp2, deepspeed-zero1, "
                               "deepspeed-zero2, deepspeed-zero3",
                               word));
}

/// Each once.
std::vector<Runtime> read_profiles(const Config& config) {
  const auto list = config.get<std::string>("search.profiles");
  if (list == "auto") return {read_profile(config.get<std::string>("runtime.profile"))};
  if (!config.is_default("runtime.profile"))
    throw InputError(ExitCode::usage, "search.profiles and runtime.profile are both set\n  leave one of them out");
  std::vector<Runtime> runtimes;
  for (const std::string_view word : split(list, ','))
    if (const Runtime runtime = read_profile(trimmed(word)); std::ranges::find(runtimes, runtime) == runtimes.end())
      runtimes.push_back(runtime);
  return runtimes;
}

/// What DDP's autocast does with LoRA's frozen weights is not modelled.
void leave_out_cast_adapters(const plan::Settings& base, Space& space) {
  const auto* llama = std::get_if<model::LlamaConfig>(&base.model);
  if (!llama || llama->lora.rank == 0) return;
  const auto left_out = std::erase_if(
      space.points, [](const Point& p) { return p.runtime == Runtime::ddp && p.parameters != DType::f32; });
  if (left_out > 0)
    space.left_out.emplace_back("pytorch-ddp with LoRA in bf16 or fp16: not modelled; search.precision=fp32 is");
}

Space space_of(const Config& config, const plan::Settings& base, const Cluster& cluster, Runtime runtime, bool alone) {
  Space refused;
  Axes axes = read_axes(config, base, cluster.gpus_per_node, runtime, alone);
  fit_to_cluster(axes, cluster, refused);
  Space space = space_of(axes, base.global_batch(), runtime != Runtime::own || is_kept_alike(base.schedule));
  leave_out_cast_adapters(base, space);
  space.left_out.insert(space.left_out.begin(), refused.left_out.begin(), refused.left_out.end());
  if (space.points.empty() && !alone)
    space.left_out.push_back(fmt::format("{}: has no plan of the values to search", name_of(runtime)));
  return space;
}

Space read_space(const Config& config, const plan::Settings& base, const Cluster& cluster,
                 const std::vector<Runtime>& runtimes) {
  std::vector<Space> spaces;
  for (const Runtime runtime : runtimes)
    spaces.push_back(space_of(config, base, cluster, runtime, runtimes.size() == 1));
  Space space = joined(std::move(spaces));
  if (!space.points.empty()) return space;
  throw InputError(ExitCode::usage,
                   fmt::format("no combination of the values to search is a plan\n  {}",
                               space.left_out.empty() ? "search.* values and the keys that were set exclude each other"
                                                      : fmt::format("{}", fmt::join(space.left_out, "\n  "))));
}

/// Some seconds' worth: a step of PyTorch's takes several times as long to simulate as one of ours.
std::int64_t simulations_of(const Config& config, Runtime runtime) {
  const auto asked = config.get<std::int64_t>("search.simulations");
  return asked > 0 ? asked : runtime == Runtime::own ? 2000 : 400;
}

std::vector<Point> points_of(const Space& space, Runtime runtime) {
  std::vector<Point> points;
  std::ranges::copy_if(space.points, std::back_inserter(points),
                       [&](const Point& point) { return point.runtime == runtime; });
  return points;
}

/// One line of stderr, written anew after each round; nothing where stderr is no terminal.
class ProgressLine {
 public:
  ~ProgressLine() {
    if (shown_) fmt::print(stderr, "\r\x1b[K");
  }

  void show(Runtime runtime, std::int64_t simulated, double fastest_s) {
    if (!is_terminal_) return;
    shown_ = true;
    fmt::print(stderr, "\r\x1b[K{}: {} plans simulated{}", name_of(runtime), simulated,
               fastest_s > 0 ? fmt::format(", fastest step {}", duration_text(fastest_s)) : "");
    std::fflush(stderr);
  }

 private:
  bool is_terminal_ = isatty(STDERR_FILENO) == 1, shown_ = false;
};

/// A search for each runtime, so that the best of each is found.
SearchResult search_each(const Config& config, const Space& space, const std::vector<Runtime>& profiles,
                         SearchOptions options, Runtimes& runtimes) {
  std::vector<SearchResult> results;
  ProgressLine line;
  for (const Runtime runtime : profiles) {
    options.simulations = simulations_of(config, runtime);
    options.progress = [&](std::int64_t simulated, double fastest_s) { line.show(runtime, simulated, fastest_s); };
    results.push_back(search(points_of(space, runtime), options, [&] { return runtimes.make(); }));
  }
  return joined(std::move(results));
}

/// What PyTorch or DeepSpeed would do, by the same flags.
torch::TorchJob job_for(Runtime runtime, int argc, const char* const* argv) {
  std::vector<const char*> arguments(argv, argv + argc);
  const std::string profile = fmt::format("--runtime.profile={}", name_of(runtime));
  arguments.push_back(profile.c_str());
  Config config = keys();
  config.parse(static_cast<int>(arguments.size()), arguments.data());
  return torch::read_torch_job(config, settings_of(config));
}

[[noreturn]] void refuse_table(const std::string& path) {
  throw InputError(ExitCode::bad_input,
                   fmt::format("search.all_plans = {}: cannot be written; expected a file in a folder that exists and "
                               "may be written to\n  set search.all_plans to another path",
                               path));
}

void refuse_foreign_keys(const Config& config, const std::vector<Runtime>& profiles) {
  std::vector<std::string_view> names;
  for (const Runtime runtime : profiles) names.push_back(name_of(runtime));
  torch::refuse_foreign_keys(config, names);
}

/// Before anything is searched, so that a search is not in vain; leaves no new file behind.
void expect_writable_table(const Config& config) {
  const auto path = config.get<std::string>("search.all_plans");
  if (path.empty()) return;
  const bool existed = std::filesystem::exists(path);
  if (!std::ofstream(path, std::ios::app)) refuse_table(path);
  std::error_code ignored;
  if (!existed) std::filesystem::remove(path, ignored);
}

void write_all_plans(const SearchResult& result, const SearchSubject& subject) {
  const auto path = subject.config.get<std::string>("search.all_plans");
  if (path.empty()) return;
  std::ofstream file(path);
  if (!(file << search_csv(result, subject)).flush()) refuse_table(path);
}

/// Files that commands share may name one.
void refuse_machine_file(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i)
    if (const std::string_view flag = argv[i]; flag == "--machine.file" || flag.starts_with("--machine.file="))
      throw InputError(ExitCode::usage,
                       "--machine.file: a search takes no measured machine, it needs machine.cluster\n  set "
                       "machine.cluster to a name of the catalogue, such as aws-p5 or dgx-a100, or to a file of that "
                       "form, and leave machine.file out");
}

}  // namespace

void expect_room(const Cluster& cluster, int gpus) {
  if (cluster.gpus > 0 && gpus > cluster.gpus)
    throw InputError(ExitCode::usage, fmt::format("parallel.world_size = {}, but {} has {} GPUs\n  expected: at most "
                                                  "that many, or another machine.cluster",
                                                  gpus, cluster.name, cluster.gpus));
}

int search_command(int argc, const char* const* argv) {
  Config config = keys();
  refuse_machine_file(argc, argv);
  config.parse(argc, argv);
  if (answered(config)) return 0;
  const Cluster cluster = cluster_of(config);
  const plan::Settings base = settings_of(config);
  const RunLength run = read_run_length(config);
  const std::vector<Runtime> profiles = read_profiles(config);
  refuse_foreign_keys(config, profiles);
  Runtimes runtimes(base, cluster);
  for (const Runtime runtime : profiles)
    if (runtime != Runtime::own) runtimes.add(runtime, job_for(runtime, argc, argv));
  const Space space = read_space(config, base, cluster, profiles);
  expect_writable_table(config);
  const SearchOptions options{.memory_bytes = std::llround(cluster.device.memory_bytes.value),
                              .threads = threads_of(config),
                              .tolerance = config.get<double>("search.tolerance")};
  const SearchResult result = search_each(config, space, profiles, options, runtimes);
  const SearchSubject subject{.config = config,
                              .base = base,
                              .cluster = cluster,
                              .space = space,
                              .run = run,
                              .threads = options.threads,
                              .tolerance = options.tolerance,
                              .rows = config.get<int>("search.rows"),
                              .runtimes = profiles,
                              .compiled = config.get<bool>("torch.compile"),
                              .step_flops = step_flops_of(base)};
  write_all_plans(result, subject);
  fmt::print("{}", config.get<bool>("json") ? search_json(result, subject) : search_text(result, subject));
  if (!result.best()) throw nothing_fits(result, subject, *runtimes.make());
  return 0;
}

}  // namespace foreshard::sim::planner
