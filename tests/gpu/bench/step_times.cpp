#include "step_times.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/cuda_engine.hpp"
#include "kernels/cuda/check.hpp"
#include "timed_engine.hpp"
#include "trace/analysis.hpp"
#include "train/kernel_choice.hpp"
#include "train/trace_sink.hpp"
#include "train/training_rank.hpp"

extern "C" foreshard::engine::MakeCudaEngine foreshard_make_cuda_engine;

namespace foreshard::gpu_bench {
namespace {

constexpr int warm_up_steps = 4;  // the first captures graphs
constexpr double learning_rate = 1e-4;

std::int64_t used_bytes() {
  std::size_t free = 0, total = 0;
  kernels::cuda::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<std::int64_t>(total - free);
}

plan::Settings settings_of(const Job& job) {
  Config config("gpu_bench");
  plan::add_plan_keys(config);
  std::vector<std::string> keys = keys_of(job);
  std::vector<char*> argv{const_cast<char*>("gpu_bench")};
  for (std::string& key : keys) argv.push_back(key.data());
  config.parse(static_cast<int>(argv.size()), argv.data());
  return plan::read_settings(config, 1).on_cuda();
}

/// The same tokens as peer.py.
train::Batch batch_of(const plan::Settings& settings) {
  const std::int64_t vocab = model::dimensions(settings.model).vocab_size;
  train::Batch batch;
  for (std::int64_t i = 0; i < settings.step_tokens(); ++i) {
    batch.tokens.push_back(static_cast<std::int32_t>((i * i * 7 + 3 * i) % vocab));
    batch.targets.push_back(static_cast<std::int32_t>((i * 5 + 1) % vocab));
  }
  return batch;
}

class Run {
 public:
  Run(const plan::Settings& settings, bool graphs)
      : ranks_(comm::make_local(1)),
        batch_(batch_of(settings)),
        before_bytes_(used_bytes()),
        rank_(settings, DType::f32, 1, *ranks_[0], {},
              [&](const engine::EngineSpec& spec) { return made(spec, graphs); }) {
    choices_ = train::choose_kernels(*ranks_[0], rank_.plan(), rank_.engine());
    rank_.engine().use_kernels(choices_, rank_.plan());
  }

  /// Algorithms, and which products are fused with the op behind them.
  const engine::KernelChoices& choices() const { return choices_; }

  /// {"step_s", "host_s"}: medians; a step's time goes to the begin of the next.
  nlohmann::json time(int steps) {
    for (int i = 0; i < warm_up_steps; ++i) step();
    std::vector<double> step_s;
    host_s_.clear();
    for (int i = 0; i < steps; ++i) {
      const std::int64_t began_ns = now_ns();
      step();
      step_s.push_back(static_cast<double>(now_ns() - began_ns) * 1e-9);
    }
    return {{"step_s", trace::median(step_s)}, {"host_s", trace::median(host_s_)}};
  }

  train::StepResult step(trace::Recorder* recorder = nullptr) {
    last_ = rank_.step(++number_, learning_rate, batch_, recorder);
    if (number_ == 1) first_loss_ = last_.loss;
    return last_;
  }

  void trace(const std::string& path, const std::string& name, double step_s) {
    trace::Recorder recorder;
    const train::StepResult result = step(&recorder);
    const trace::RunInfo info{.run_id = name, .command_line = "gpu_bench", .config_json = "{}", .world_size = 1};
    train::TraceSink sink(*ranks_[0], path, info, rank_.plan(), {{.host = "gpu", .node = 0, .local_rank = 0}});
    sink.add(number_, result, static_cast<std::int64_t>(batch_.tokens.size()), recorder.take(), rank_.engine());
    sink.close({.arena_bytes = arena().high_water_bytes(),
                .arena_touched_bytes = rank_.engine().touched_bytes(),
                .step_time_s = step_s});
  }

  nlohmann::json memory() const {
    return {{"plan_arena_bytes", rank_.plan().arena_bytes},
            {"arena_bytes", arena().size_bytes()},
            {"high_water_bytes", arena().high_water_bytes()},
            {"engine_bytes", engine_bytes_},
            {"used_bytes", used_bytes()}};
  }
  nlohmann::json losses() const { return {{"first_loss", first_loss_}, {"last_loss", last_.loss}}; }
  const plan::Plan& plan() const { return rank_.plan(); }

 private:
  std::unique_ptr<engine::Engine> made(const engine::EngineSpec& spec, bool graphs) {
    std::unique_ptr<engine::Engine> engine(foreshard_make_cuda_engine(spec, {.graphs = graphs}));
    engine_bytes_ = used_bytes() - before_bytes_;
    return std::make_unique<TimedEngine>(std::move(engine), host_s_);
  }
  const engine::Arena& arena() const { return rank_.engine().arena(plan::Space::device); }

  std::vector<std::unique_ptr<comm::Communicator>> ranks_;
  train::Batch batch_;
  std::int64_t before_bytes_, engine_bytes_ = 0;
  std::vector<double> host_s_;
  std::int64_t number_ = 0;
  double first_loss_ = 0;
  train::StepResult last_;
  train::TrainingRank rank_;
  engine::KernelChoices choices_;
};

}  // namespace

std::vector<std::string> keys_of(const Job& job) {
  return {"--model.preset=" + job.preset, "--model.vocab_size=50304", fmt::format("--train.seq_len={}", job.seq),
          fmt::format("--train.local_batch_size={}", job.rows), "--precision.param=bf16"};
}

nlohmann::json step_times(const Job& job, const std::string& trace_path) {
  const plan::Settings settings = settings_of(job);
  nlohmann::json result{{"model", job.preset}, {"rows", job.rows}, {"seq", job.seq}, {"keys", keys_of(job)}};
  {
    Run run(settings, true);
    result.update(run.time(job.steps));
    result["parameters"] = run.plan().parameters;
    result["flops"] = model::model_flops_per_token(settings.model, run.plan().parameters, job.seq) *
                      static_cast<double>(settings.step_tokens());
    result.update(run.memory());
    result.update(run.losses());
    result["kernel_choices"] = run.choices();
    run.trace(trace_path, job.preset, result["step_s"]);
  }
  if (job.also_by_op) result["by_op"] = Run(settings, false).time(job.steps);
  return result;
}

}  // namespace foreshard::gpu_bench
