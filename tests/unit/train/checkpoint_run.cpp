#include "checkpoint_run.hpp"

#include <algorithm>
#include <mutex>
#include <thread>

#include "engine/cpu_executor.hpp"
#include "train/checkpoint_resume.hpp"
#include "train/data_shard.hpp"

namespace foreshard::train {
namespace {

constexpr std::uint64_t seed = 11;
constexpr std::int64_t seq = 5;

plan::Settings settings_of(const Job& job) {
  const model::GptConfig model{.layers = job.layers,
                               .width = job.width,
                               .heads = job.heads,
                               .vocab_size = 19,
                               .max_seq_len = seq,
                               .dropout = 0.2};
  plan::Settings settings{.model = model, .batch = {.batch = 2, .seq = seq}, .mesh = job.mesh};
  settings.schedule.keep = job.keep_gathered;
  settings.schedule.accumulation = job.accumulation;
  settings.schedule.offload = job.offload;
  if (job.kept_in_bf16) {
    settings.schedule.precision = {.parameters = DType::bf16};
    settings.schedule.master = DType::bf16;
  }
  settings.partial = job.partial;
  settings.schedule.micro_batches = job.micro_batches;
  return settings;
}

StreamOptions stream_of(const Job& job, int rank) {
  return {.vocab_size = 19,
          .seq_len = seq,
          .local_batch = 2,
          .micro_batches = job.micro_batches,
          .rank = rank,
          .world_size = job.mesh.world_size(),
          .shuffle = true,
          .seed = seed};
}

class Ranks {
 public:
  explicit Ranks(const Job& job) : job_(job), communicators_(comm::make_local(job.mesh.world_size())) {
    outcome_.state.resize(communicators_.size());
  }

  JobOutcome run() {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < job_.mesh.world_size(); ++rank) threads.emplace_back([this, rank] { guarded(rank); });
    for (std::thread& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
    return std::move(outcome_);
  }

 private:
  void guarded(int rank) {
    try {
      run_rank(rank);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      communicators_[static_cast<std::size_t>(rank)]->abort(1);
    }
  }

  void run_rank(int index) {
    comm::Communicator& communicator = *communicators_[static_cast<std::size_t>(index)];
    const auto kernels = kernels::make_cpu();
    const plan::Settings settings = settings_of(job_);
    TrainingRank rank(settings, DType::f32, seed, communicator, {},
                      engine::on_cpu(*kernels, {.on_failure = [&](std::exception_ptr) { communicator.abort(1); }}));
    const TokenStream data({job_.data}, stream_of(job_, index));
    const auto layout = layout_of(settings, rank.plan(), "adamw", seed);
    const auto resumed = resume_from(communicator, rank, job_.candidates, layout);
    const std::int64_t first = resumed ? resumed->manifest.step + 1 : 1;
    if (index == 0) note(resumed);
    Batch batch;
    for (std::int64_t step = first; step <= job_.steps; ++step) {
      data.read(step, batch);
      const StepResult result = rank.step(step, 1e-2 / static_cast<double>(step), batch);
      if (index == 0) note(result);
      if (std::ranges::count(job_.save_after, step) > 0)
        save_checkpoint(communicator, rank, {.step = step, .layout = layout}, options_of(index));
    }
    for (const StateBuffer& buffer : state_of(rank.plan()))
      std::ranges::copy(rank.copy_of(buffer.buffer),
                        std::back_inserter(outcome_.state[static_cast<std::size_t>(index)]));
    communicator.barrier();
  }

  SaveOptions options_of(int rank) const {
    SaveOptions options{.folder = rank == 0 ? job_.folder : std::filesystem::path(), .keep = job_.keep};
    if (job_.at_point) options.at_point = [this, rank](std::string_view point) { job_.at_point(rank, point); };
    return options;
  }

  void note(const std::optional<Resumed>& resumed) {
    if (!resumed) return;
    outcome_.resumed_step = resumed->manifest.step;
    outcome_.refused = resumed->refused;
  }

  void note(const StepResult& result) {
    outcome_.losses.push_back(result.loss);
    outcome_.grad_norms.push_back(result.grad_norm);
  }

  const Job& job_;
  std::vector<std::unique_ptr<comm::Communicator>> communicators_;
  std::mutex mutex_;
  JobOutcome outcome_;
  std::exception_ptr error_;
};

}  // namespace

void write_tokens(const std::filesystem::path& path) {
  std::vector<std::uint16_t> tokens(131);  // 26 windows: an epoch ends within a step
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::uint16_t>(i * i * 3 % 19);
  write_shard(path, tokens);
}

JobOutcome run(const Job& job) { return Ranks(job).run(); }

}  // namespace foreshard::train
