#include "train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/log.hpp"
#include "base/process_memory.hpp"
#include "base/units.hpp"
#include "plan/print.hpp"
#include "train/agreement.hpp"
#include "train/data_streams.hpp"
#include "train/hosts.hpp"
#include "train/nonfinite.hpp"
#include "train/replica_check.hpp"
#include "train/step_failure.hpp"
#include "train/weights_export.hpp"

namespace foreshard::train {

Trainer::Trainer(const Config& config, const plan::Settings& plan, const TrainSettings& train,
                 comm::Communicator& communicator, std::vector<std::string> command_line,
                 std::function<void(std::exception_ptr)> on_failure, const std::atomic<bool>& stop_requested)
    : config_(config),
      plan_settings_(plan),
      settings_(train),
      communicator_(communicator),
      kernels_(kernels::make_cpu()),
      pulses_(communicator),
      stop_(communicator, stop_requested) {
  expect_same_config(communicator_, config_);
  together(communicator_, [&] {
    data_ = open_training_data(plan_settings_, settings_, communicator_);
    validation_ = open_validation_data(plan_settings_, settings_, communicator_);
  });
  base_rss_bytes_ = resident_bytes();
  rank_.emplace(plan_settings_, DType::f32, settings_.seed, communicator_, settings_.optimizer,
                engine_maker(on_failure));
  const engine::Pulse::LongPause start(pulses_.own());
  if (settings_.watchdog_s > 0) watch(std::move(on_failure));
  checkpoints_.emplace(settings_.checkpoint, communicator_, *rank_, checkpoint_facts());
  first_step_ = checkpoints_->resume() + 1;
  if (first_step_ == 1) load_weights(settings_.weights, plan_settings_.model, communicator_, *rank_);
  set_kernel_choices();
  if (settings_.self_test) test_machine();
  const std::string command = fmt::format("{}", fmt::join(command_line, " "));
  together(communicator_, [&] { open_run(std::move(command_line)); });
  if (settings_.trace) open_trace(command);
}

void Trainer::test_machine() {
  if (settings_.on_cuda) {
    self_test_ = expect_sound_devices(communicator_, rank_->plan(), rank_->engine());
    return;
  }
  rank_->change_scratch([this](std::span<std::byte> scratch) {
    self_test_ = expect_sound_machine(communicator_, rank_->plan(), scratch, *kernels_);
  });
}

/// A resumed run goes on with the kernels it began with, if it can.
void Trainer::set_kernel_choices() {
  const auto& resumed = checkpoints_->resumed();
  const bool goes_on = resumed && usable_on_all(communicator_, resumed->manifest.choices, rank_->engine());
  if (resumed && !goes_on && leads())
    log_warn(
        "the checkpoint's kernels are of another device or library: they are chosen anew, and may round differently");
  kernel_choices_ = goes_on ? resumed->manifest.choices : choose_kernels(communicator_, rank_->plan(), rank_->engine());
  rank_->engine().use_kernels(kernel_choices_, rank_->plan());
  checkpoints_->set_choices(kernel_choices_);
}

engine::CpuOptions Trainer::cpu_options(std::function<void(std::exception_ptr)> on_failure) {
  return {.threads = settings_.threads > 0 ? settings_.threads : cores_of_rank(communicator_.node_size()),
          .on_failure = std::move(on_failure),
          .pulse = &pulses_.own()};
}

engine::MakeEngine Trainer::engine_maker(std::function<void(std::exception_ptr)> on_failure) {
  return settings_.on_cuda ? engine::on_cuda({.graphs = settings_.graphs, .pulse = &pulses_.own()})
                           : engine::on_cpu(*kernels_, cpu_options(std::move(on_failure)));
}

void Trainer::watch(std::function<void(std::exception_ptr)> on_failure) {
  const auto on_stall = [this, on_failure = std::move(on_failure)](const std::exception_ptr& stall) {
    record_failure("stalled", ExitCode::stalled);
    on_failure(stall);
  };
  watchdog_.emplace(
      pulses_, [this](std::int64_t step) -> const plan::Plan& { return rank_->plan_of(step); },
      engine::WatchdogOptions{std::chrono::duration<double>(settings_.watchdog_s), on_stall});
}

void Trainer::open_run(std::vector<std::string> command_line) {
  const std::vector<std::string> hosts = gather_hosts(communicator_);
  if (!leads()) return;
  folder_.emplace(settings_.run_dir, settings_.run_name);
  folder_->write_config(config_.resolved_ini());
  record_.emplace(folder_->file("run.json"), folder_->run_id(), std::move(command_line), hosts);
  if (const auto& from = checkpoints_->resumed())
    (*record_)["resumed_from"] = {{"checkpoint", from->checkpoint.string()}, {"step", from->manifest.step}};
  record_->write();
  metrics_.emplace(folder_->file("metrics.jsonl"), folder_->run_id());
  log_.open(folder_->file("main.log"));
  std::ofstream(folder_->file("plan.txt")) << plan::order_text(rank_->plan()) << "\n\n"
                                           << plan::plan_text(rank_->plan());
}

void Trainer::open_trace(const std::string& command_line) {
  const trace::RunInfo run{.run_id = folder_ ? folder_->run_id() : "",
                           .command_line = command_line,
                           .config_json = json_text(config_.to_json(), -1),
                           .world_size = communicator_.size(),
                           .time_origin_unix_ns = unix_now_ns() - now_ns(),
                           .clock_error_ns = self_test_.clock_error_ns};
  std::vector<trace::RankInfo> ranks;
  const auto hosts = gather_hosts(communicator_);
  const auto local_ranks = communicator_.all_gather_u64(static_cast<std::uint64_t>(communicator_.node_rank()));
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    ranks.push_back({.host = hosts[rank], .local_rank = static_cast<std::int32_t>(local_ranks[rank])});
  const std::string path =
      settings_.trace_file.empty() && folder_ ? folder_->file("trace.h5").string() : settings_.trace_file;
  together(communicator_, [&] { trace_.emplace(communicator_, path, run, rank_->plan(), ranks); });
}

Trainer::~Trainer() { record_failure("failed", ExitCode::runtime_failure); }

void Trainer::record_failure(const std::string& reason, ExitCode code) {
  if (!record_ || finished_) return;
  try {
    record_->finish(reason, static_cast<int>(code));
  } catch (const LibraryError& error) {  // what ended the run matters more than what kept it from being recorded
    log_warn("{}", error.what());
  }
}

ExitCode Trainer::run() {
  if (leads()) introduce();
  if (leads() && first_step_ > settings_.steps) log_info("nothing left to do: train.steps = {}", settings_.steps);
  check_replicas(0);
  began_ns_ = now_ns();
  std::int64_t done = first_step_ - 1;
  for (bool stopped = false; done < settings_.steps && !stopped;) {
    step(++done);
    stopped = stop_.after_step();
    if (stopped || checkpoints_->due_after(done, settings_.steps)) save_checkpoint(done);
  }
  if (done == settings_.steps) export_weights(settings_.export_path, plan_settings_.model, communicator_, *rank_);
  finish(done);
  return done < settings_.steps ? ExitCode::requeue : ExitCode::done;
}

void Trainer::step(std::int64_t step) {
  const std::int64_t data_began_ns = now_ns();
  data_->read(step, batch_);
  const double data_s = static_cast<double>(now_ns() - data_began_ns) * 1e-9;
  const comm::Counters before = rank_->engine().counters();
  const double loss_scale = rank_->scaler().scale();
  const StepResult result =
      rank_->step(step, learning_rate(settings_.schedule, step), batch_, is_traced(step) ? &recorder_ : nullptr);
  if (is_whole(step)) count_collectives(before);
  if (is_traced(step)) {
    std::vector<trace::Event> events = recorder_.take();
    totals_ = trace::totals_of(events, rank_->plan(), result.duration_ns);
    if (step > first_step_) exposed_s_.push_back(totals_.exposed_ns * 1e-9);
    trace_->add(step, result, rank_->plan().micro_batch_tokens * rank_->plan().micro_batches, std::move(events),
                rank_->engine());
  }
  if (is_whole(step) && (step > first_step_ || settings_.steps == first_step_))
    step_times_s_.push_back(static_cast<double>(result.duration_ns) * 1e-9);
  judge(step, result, loss_scale);
  if (leads()) report(metrics_of(step, result, data_s));
  check_replicas(step);
  if (validates_after(step)) validate(step);
  if (trace_ && step % settings_.trace_flush_steps == 0 && step - settings_.trace_flush_steps < settings_.trace_last)
    trace_->flush();
}

const engine::Arena& Trainer::device_arena() const { return rank_->engine().arena(plan::Space::device); }

bool Trainer::is_whole(std::int64_t step) const { return rank_->plans().kind_of(step) == 0; }

/// A trace is of one plan.
bool Trainer::is_traced(std::int64_t step) const {
  return trace_ && is_whole(step) && step >= settings_.trace_first && step <= settings_.trace_last;
}

/// All ranks have the same verdict, so all come here together.
void Trainer::judge(std::int64_t step, const StepResult& result, double loss_scale) {
  if (result.finite) return;
  if (rank_->scaler().dynamic() && std::isfinite(result.loss)) {
    note_overflow(step, loss_scale);
  } else {
    const std::string findings = explain_nonfinite(communicator_, *rank_, step, batch_);
    if (!settings_.skip_nonfinite) stop(step, result, findings);
    if (leads()) log_warn("step {}: skipped, nothing was updated: {}", step, findings);
  }
  expect_progress(step, result);
}

/// What a dynamic loss scale is for; not a fault.
void Trainer::note_overflow(std::int64_t step, double loss_scale) const {
  if (!leads()) return;
  log_info("step {}: skipped, the gradient overflowed at loss scale {}; now {}", step, loss_scale,
           rank_->scaler().scale());
}

void Trainer::stop(std::int64_t step, const StepResult& result, const std::string& findings) {
  together(communicator_,
           [&] { throw InputError(ExitCode::runtime_failure, diverged_text(step, result, findings, settings_)); });
}

void Trainer::expect_progress(std::int64_t step, const StepResult& result) {
  const std::int64_t skipped = rank_->update_state().skipped_in_a_row;
  if (settings_.max_skips == 0 || skipped < settings_.max_skips) return;
  together(communicator_, [&] {
    throw InputError(ExitCode::runtime_failure,
                     no_progress_text(step, skipped, result, rank_->scaler().scale(), settings_));
  });
}

void Trainer::check_replicas(std::int64_t step) {
  if (settings_.replica_check_freq > 0 && step % settings_.replica_check_freq == 0)
    expect_equal_replicas(communicator_, *rank_, step);
}

bool Trainer::validates_after(std::int64_t step) const {
  if (!validation_ || settings_.validation_freq == 0) return false;
  return step % settings_.validation_freq == 0 || step == settings_.steps;
}

void Trainer::validate(std::int64_t step) {
  const std::int64_t began_ns = now_ns();
  const std::int64_t batches = settings_.validation_batches > 0
                                   ? std::min(settings_.validation_batches, validation_->batches())
                                   : validation_->batches();
  double loss = 0, tokens = 0;
  for (std::int64_t i = 0; i < batches; ++i) {
    validation_->read(i, batch_);
    const auto [sum, count] = rank_->evaluate(batch_);
    loss += sum;
    tokens += count;
  }
  if (!leads()) return;
  const double seconds = static_cast<double>(now_ns() - began_ns) * 1e-9;
  metrics_->write_validation(step, loss / tokens, seconds);
  print(validation_line(step, loss / tokens, seconds));
}

Manifest Trainer::checkpoint_facts() const {
  Manifest facts{.config = config_.to_json()};
  facts.layout = layout_of(plan_settings_, rank_->plan(), config_.get<std::string>("optimizer.name"), settings_.seed);
  const auto hashes = communicator_.all_gather_u64(data_->content_hash());
  facts.layout["data"] = {
      {"sequences", data_->rows()},
      {"content", fmt::format("{:016x}", std::accumulate(hashes.begin(), hashes.end(), std::uint64_t{0}))},
      {"shuffle", settings_.shuffle}};
  return facts;
}

void Trainer::save_checkpoint(std::int64_t step) {
  const engine::Pulse::LongPause pause(pulses_.own());
  const std::int64_t began_ns = now_ns();
  const auto path = checkpoints_->save(step, folder_ ? folder_->path() : std::filesystem::path());
  if (!leads()) return;
  const double seconds = static_cast<double>(now_ns() - began_ns) * 1e-9;
  print(fmt::format("checkpoint step {} | {} | {}", step, duration_text(seconds), path.string()));
}

}  // namespace foreshard::train
