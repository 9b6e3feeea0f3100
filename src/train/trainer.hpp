#pragma once
#include <atomic>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/error.hpp"
#include "engine/cpu_executor.hpp"
#include "engine/cuda_engine.hpp"
#include "engine/watchdog.hpp"
#include "trace/analysis.hpp"
#include "train/kernel_choice.hpp"
#include "train/metrics.hpp"
#include "train/model_weights.hpp"
#include "train/run_folder.hpp"
#include "train/self_test.hpp"
#include "train/stop_request.hpp"
#include "train/trace_sink.hpp"
#include "train/train_settings.hpp"

namespace foreshard::train {

/// A whole training run of one rank: data, steps, validation, metrics, trace, run folder. Rank 0 writes and prints.
class Trainer {
 public:
  /// Collective. Opens the data, builds the plan, loads a checkpoint, makes the run folder. Throws InputError for what
  /// the user got wrong. `stop_requested` may become true at any time, on any rank.
  Trainer(const Config& config, const plan::Settings& plan, const TrainSettings& train,
          comm::Communicator& communicator, std::vector<std::string> command_line,
          std::function<void(std::exception_ptr)> on_failure, const std::atomic<bool>& stop_requested);

  ~Trainer();  ///< a run that did not come to its end is recorded as failed

  /// Collective: all steps that are left; `requeue` if a requested stop came before the last. A step whose loss or
  /// gradient is not finite is skipped, or ends the run with an InputError that names what was not; so do too many
  /// skipped steps in a row.
  ExitCode run();

 private:
  bool leads() const { return communicator_.rank() == 0; }
  void set_kernel_choices();
  void test_machine();
  const engine::Arena& device_arena() const;
  engine::CpuOptions cpu_options(std::function<void(std::exception_ptr)> on_failure);
  engine::MakeEngine engine_maker(std::function<void(std::exception_ptr)> on_failure);
  void watch(std::function<void(std::exception_ptr)> on_failure);
  void record_failure(const std::string& reason, ExitCode code);
  void open_run(std::vector<std::string> command_line);
  void open_trace(const std::string& command_line);
  void introduce() const;
  void step(std::int64_t step);
  bool is_whole(std::int64_t step) const;
  bool is_traced(std::int64_t step) const;
  void judge(std::int64_t step, const StepResult& result, double loss_scale);
  void note_overflow(std::int64_t step, double loss_scale) const;
  void stop(std::int64_t step, const StepResult& result, const std::string& findings);
  void expect_progress(std::int64_t step, const StepResult& result);
  StepMetrics metrics_of(std::int64_t step, const StepResult& result, double data_s) const;
  void report(const StepMetrics& metrics);
  void check_replicas(std::int64_t step);
  void validate(std::int64_t step);
  bool validates_after(std::int64_t step) const;
  Manifest checkpoint_facts() const;  // collective
  void save_checkpoint(std::int64_t step);
  void count_collectives(const comm::Counters& before);
  trace::Summary summary() const;
  void finish(std::int64_t last_step);
  void print(const std::string& line);
  double flops_per_step() const;
  double share_of_work(std::int64_t step) const;
  std::int64_t largest(std::int64_t value) const;

  const Config& config_;
  plan::Settings plan_settings_;
  TrainSettings settings_;
  comm::Communicator& communicator_;
  std::unique_ptr<kernels::Backend> kernels_;
  KernelChoices kernel_choices_;
  std::unique_ptr<TrainingData> data_;
  std::unique_ptr<ValidationData> validation_;
  std::int64_t base_rss_bytes_;
  engine::PulseBoard pulses_;
  std::optional<TrainingRank> rank_;
  std::optional<Checkpoints> checkpoints_;
  StopAgreement stop_;
  std::int64_t first_step_ = 1;
  SelfTest self_test_;
  trace::Recorder recorder_;
  std::optional<TraceSink> trace_;

  // On rank 0.
  std::optional<RunFolder> folder_;
  std::optional<RunRecord> record_;
  std::optional<MetricsFile> metrics_;
  std::ofstream log_;
  bool finished_ = false;

  Batch batch_;
  StepTimer timer_;
  std::int64_t began_ns_ = 0;
  trace::Collectives collectives_;                // of the last step, counted
  trace::StepTotals totals_;                      // of the last recorded step
  std::vector<double> step_times_s_, exposed_s_;  // after warm-up

  std::optional<engine::Watchdog> watchdog_;  // last: it looks at the above
};

}  // namespace foreshard::train
