#include "train/train_settings.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "base/error.hpp"
#include "kernels/backend.hpp"

namespace foreshard::train {
namespace {

/// A decay of 1 never forgets, and divides by 1 − 1 where it is corrected for.
void expect_decay(const Config& config, std::string_view key) {
  if (config.get<double>(key) < 1) return;
  throw InputError(ExitCode::usage,
                   fmt::format("{} = {}: expected at least 0 and less than 1", key, config.get<double>(key)));
}

/// "A:B", both ends included; either may be missing.
std::pair<std::int64_t, std::int64_t> read_step_range(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto number = [&](std::string_view part, std::int64_t absent) {
    std::int64_t value = absent;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (!part.empty() && (error != std::errc() || end != part.data() + part.size())) value = -1;
    return value;
  };
  const std::int64_t first = number(std::string_view(text).substr(0, colon), 1);
  const std::int64_t last =
      colon == std::string::npos ? first : number(std::string_view(text).substr(colon + 1), INT64_MAX);
  if (first < 1 || last < first)
    throw InputError(
        ExitCode::usage,
        fmt::format("trace.steps is '{}', expected FIRST:LAST with 1 <= FIRST <= LAST, for example 1:200", text));
  return {first, last};
}

/// Before training, not after it.
void expect_folder_of(const std::filesystem::path& file) {
  if (file.empty()) return;
  const auto folder = std::filesystem::absolute(file).parent_path();
  if (std::filesystem::is_directory(folder)) return;
  throw InputError(ExitCode::usage, fmt::format("checkpoint.export = {}: there is no folder {}; make it first",
                                                file.string(), folder.string()));
}

void expect_rounding_matters(const Config& config) {
  if (config.is_default("optimizer.rounding") || config.get<std::string>("precision.master") == "bf16") return;
  throw InputError(
      ExitCode::usage,
      fmt::format("optimizer.rounding = {} with precision.master = {}: updates round parameters only where "
                  "they are kept in bf16; leave it out, or set precision.master = bf16",
                  config.get<std::string>("optimizer.rounding"), config.get<std::string>("precision.master")));
}

void add_step_keys(Config& config) {
  config.add("train.steps", 100, "optimizer steps", {.unit = "steps", .min = 1});
  config.add("train.seed", 1234, "decides initial values, dropout and shuffling");
  config.add("model.weights", std::string(),
             "values to begin with: a safetensors file of the model, an index of several, or a folder with either, as "
             "Hugging Face writes them; empty = random ones");
  config.add("train.max_norm", 1.0, "clip the global gradient norm to this; 0 = never", {.min = 0});
  config.add("train.clip_value", 0.0, "then cut each element of the gradient to ± this; 0 = never", {.min = 0});
  config.add("train.on_nonfinite", std::string("stop"),
             "when a loss or gradient is infinite or not a number: stop, or skip the step",
             {.choices = {"stop", "skip"}});
  config.add("train.max_skips", 50,
             "end the run (exit code 1) after so many skipped steps in a row, whether skipped by on_nonfinite or by a "
             "dynamic loss scale; 0 = never",
             {.unit = "steps", .min = 0});
  config.add("train.loss_scale", std::string("1"), "factor on the loss in backward: a number, or dynamic");
}

void add_optimizer_keys(Config& config) {
  config.add("optimizer.beta1", 0.9, "decay of the first moment (of lion: in the direction)", {.min = 0, .max = 1});
  config.add("optimizer.beta2", 0.95, "decay of the second moment (of lion: of its only one; its paper has 0.99)",
             {.min = 0, .max = 1});
  config.add("optimizer.eps", 1e-8, "added to the root of the second moment", {.min = 0});
  config.add("optimizer.rounding", std::string("stochastic"),
             "how updates round parameters where precision.master is bf16: stochastic, right on average by random bits "
             "of seed, step and element; or to the nearest, which loses updates below half a unit in the last place",
             {.choices = {"stochastic", "nearest"}});
  config.add("optimizer.nesterov", false, "sgd looks ahead along its velocity");
  config.add("optimizer.weight_decay", 0.1, "of parameters with two or more dimensions", {.min = 0});
  config.add("optimizer.groups", std::string(),
             "parameters by name with settings of their own, e.g. '*.bias,*.ln_*:weight_decay=0; wte.*:lr_scale=0.1'; "
             "the first that matches counts");
  add_lr_keys(config);
}

void add_data_keys(Config& config) {
  config.add("data.path", std::string(),
             "training shards (glob), of tokens or of images, as foreshard-data makes them");
  config.add("data.val_path", std::string(), "validation shards (glob); empty = no validation");
  config.add("data.shuffle", false, "shuffle the rows of each epoch");
  config.add("validation.freq", 100, "validate every so many steps, and at the end; 0 = never",
             {.unit = "steps", .min = 0});
  config.add("validation.batches", 20, "batches of one validation, at most; 0 = all", {.min = 0});
}

void add_output_keys(Config& config) {
  config.add("metrics.log_freq", 10, "print a line every so many steps", {.unit = "steps", .min = 1});
  config.add("trace.enable", true, "write a trace");
  config.add("trace.file", std::string(), "where to; empty = trace.h5 in the run folder");
  config.add("trace.steps", std::string("1:200"), "steps that are recorded, FIRST:LAST");
  config.add("trace.flush_steps", 20, "steps between two flushes to disk", {.unit = "steps", .min = 1});
  add_checkpoint_keys(config);
  config.add(
      "checkpoint.export", std::string(),
      "after the last step, write the whole model's weights to this safetensors file, under Hugging Face's names "
      "(DeepViT's: ViT's); "
      "empty = no");
  config.add("run.dir", std::string("runs"), "folder of run folders");
  config.add("run.name", std::string("train"), "run.dir/run.name/TIME is the run folder");
}

void add_engine_keys(Config& config) {
  config.add("engine.device", std::string("cpu"),
             "what computes: cpu, the cores of each rank, with MPI; cuda, a CUDA device of each rank, with NCCL",
             {.choices = {"cpu", "cuda"}});
  config.add("engine.graphs", true, "on CUDA devices, replay captured graphs in steps that are not traced");
  config.add("engine.threads", 0,
             "compute threads of a rank; 0 = the cores it is bound to, else cores of the node / its ranks",
             {.unit = "threads", .min = 0});
  config.add("engine.self_test", true,
             "try the collectives and matrix products of the plan before the first step; exit code 4 if one is wrong");
  config.add("engine.replica_check_freq", 100,
             "compare the parameters of ranks that hold the same shard before the first step and every so many steps; "
             "exit code 4 if they differ; 0 = never",
             {.unit = "steps", .min = 0});
  config.add("engine.watchdog_s", 300.0,
             "end the run (exit code 6) when nothing has moved for so long, and say who is late: more than the longest "
             "op or pause between steps; 0 = never",
             {.unit = "s", .min = 0, .max = 1e8});
  config.add("comm.backend", std::string("auto"),
             "auto and mpi: MPI, through shared memory inside a node; messages: MPI without it",
             {.choices = {"auto", "mpi", "messages"}});
}

}  // namespace

void add_train_keys(Config& config) {
  add_step_keys(config);
  add_optimizer_keys(config);
  add_data_keys(config);
  add_output_keys(config);
  add_engine_keys(config);
}

TrainSettings read_train_settings(const Config& config) {
  TrainSettings s;
  s.steps = config.get<std::int64_t>("train.steps");
  s.seed = static_cast<std::uint64_t>(config.get<std::int64_t>("train.seed"));
  s.optimizer = {.beta1 = config.get<double>("optimizer.beta1"),
                 .beta2 = config.get<double>("optimizer.beta2"),
                 .epsilon = config.get<double>("optimizer.eps"),
                 .weight_decay = config.get<double>("optimizer.weight_decay"),
                 .max_norm = config.get<double>("train.max_norm"),
                 .momentum = config.get<double>("optimizer.momentum"),
                 .nesterov = config.get<bool>("optimizer.nesterov"),
                 .stochastic_rounding = config.get<std::string>("optimizer.rounding") == "stochastic",
                 .clip_value = config.get<double>("train.clip_value"),
                 .groups = parse_parameter_groups(config.get<std::string>("optimizer.groups")),
                 .loss_scale = parse_loss_scale("train.loss_scale", config.get<std::string>("train.loss_scale"))};
  s.skip_nonfinite = config.get<std::string>("train.on_nonfinite") == "skip";
  s.max_skips = config.get<std::int64_t>("train.max_skips");
  s.schedule = read_lr_schedule(config, s.steps);
  s.weights = config.get<std::string>("model.weights");
  s.data_path = config.get<std::string>("data.path");
  s.validation_path = config.get<std::string>("data.val_path");
  s.shuffle = config.get<bool>("data.shuffle");
  s.validation_freq = config.get<std::int64_t>("validation.freq");
  s.validation_batches = config.get<std::int64_t>("validation.batches");
  s.log_freq = config.get<std::int64_t>("metrics.log_freq");
  s.trace = config.get<bool>("trace.enable");
  s.trace_file = config.get<std::string>("trace.file");
  std::tie(s.trace_first, s.trace_last) = read_step_range(config.get<std::string>("trace.steps"));
  s.trace_flush_steps = config.get<std::int64_t>("trace.flush_steps");
  s.checkpoint = read_checkpoint_settings(config);
  s.export_path = config.get<std::string>("checkpoint.export");
  expect_folder_of(s.export_path);
  s.run_dir = config.get<std::string>("run.dir");
  s.run_name = config.get<std::string>("run.name");
  s.on_cuda = config.get<std::string>("engine.device") == "cuda";
  s.graphs = config.get<bool>("engine.graphs");
  s.threads = config.get<int>("engine.threads");
  s.self_test = config.get<bool>("engine.self_test");
  s.replica_check_freq = config.get<std::int64_t>("engine.replica_check_freq");
  s.watchdog_s = config.get<double>("engine.watchdog_s");
  for (const char* key : {"optimizer.beta1", "optimizer.beta2"}) expect_decay(config, key);
  expect_rounding_matters(config);
  if (s.optimizer.nesterov && s.optimizer.momentum == 0)
    throw InputError(ExitCode::usage,
                     "optimizer.nesterov = true looks ahead along a velocity, but optimizer.momentum is "
                     "0: set it above 0, for example --optimizer.momentum=0.9");
  if (s.data_path.empty())
    throw InputError(ExitCode::usage,
                     "data.path is not given: name the training shards, for example --data.path='data/text_train.bin' "
                     "(make them with foreshard-data)");
  return s;
}

namespace {

void expect_unpacked(const model::Config& config) {
  const auto* llama = std::get_if<model::LlamaConfig>(&config);
  if (!llama || llama->lora.base == model::Packing::none) return;
  throw InputError(ExitCode::usage,
                   fmt::format("model.lora_base = {}: the engine has no kernels for weights in four bits\n"
                               "  expected: none; foreshard-plan predicts this one",
                               model::packing_names[static_cast<std::size_t>(llama->lora.base)]));
}

}  // namespace

void expect_kernels_exist(const plan::Settings& plan) {
  expect_unpacked(plan.model);
  const std::string_view family = model::family_of(plan.model);
  if (family != "profile") return;
  throw InputError(ExitCode::usage,
                   fmt::format("model.preset: the engine has no kernels for models of the family {}\n"
                               "  expected: gpt, llama, mpt, t5, vit or deepvit; foreshard-plan predicts this one",
                               family));
}

void expect_fits_devices(const plan::Settings& plan) {
  constexpr std::int64_t most_bytes = 163 << 10;
  const auto* vit = std::get_if<model::VitConfig>(&plan.model);
  if (!vit || !vit->reattention) return;
  const kernels::Reattention shape{.seq = vit->tokens(), .heads = vit->heads, .width = vit->width / vit->heads};
  if (shape.shared_bytes() <= most_bytes) return;
  throw InputError(
      ExitCode::usage,
      fmt::format("engine.device = cuda: re-attention of {} heads over {} tokens needs {} bytes of shared "
                  "memory in a block\n"
                  "  expected: at most {}; take fewer heads or larger patches, or train on processor cores",
                  shape.heads, shape.seq, shape.shared_bytes(), most_bytes));
}

void expect_groups_match(const TrainSettings& settings, const plan::Settings& plan) {
  parameter_rules(model::build(plan.model, plan.batch), settings.optimizer.groups, 0);
}

}  // namespace foreshard::train
