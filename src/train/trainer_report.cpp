#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/process_memory.hpp"
#include "base/units.hpp"
#include "plan/print.hpp"
#include "plan/query.hpp"
#include "train/run_results.hpp"
#include "train/trainer.hpp"

/// What a run says of itself: at its beginning, of each step, and at its end.
namespace foreshard::train {
namespace {

trace::CollectiveTotal difference(const comm::Count& after, const comm::Count& before) {
  return {after.calls - before.calls, after.payload_bytes - before.payload_bytes,
          after.received_bytes - before.received_bytes};
}

}  // namespace

void Trainer::introduce() const {
  const plan::Plan& plan = rank_->plan();
  const model::Dimensions model = model::dimensions(plan_settings_.model);
  log_info("model        {} parameters in {} units, {} layers, width {}, {} heads, vocabulary {}",
           count_text(plan.parameters), plan.units.size(), model.layers, model.width, model.heads, model.vocab_size);
  log_info("ranks        {} over {}, shard degree {}, {} on this node", communicator_.size(), communicator_.transport(),
           plan.mesh.shard_degree(), communicator_.node_size());
  log_info("step         {} tokens: {} micro-batches of {} x {} tokens on each rank",
           count_text(plan_settings_.step_tokens()), plan.micro_batches, plan_settings_.batch.batch,
           plan_settings_.batch.seq);
  log_info("plan         {} ops, arena {} a rank, hash {:016x}", plan.ops.size(), bytes_text(plan.arena_bytes),
           plan::hash_of(plan));
  log_info("data         {}, {} steps an epoch", data_->size_text(), count_text(data_->steps_per_epoch()));
  for (const std::string& line : config_.overrides()) log_info("{}", line);
  if (folder_) log_info("run folder   {}", folder_->path().string());
}

/// Model FLOPs of one step of one rank.
double Trainer::flops_per_step() const {
  const double per_token =
      model::model_flops_per_token(plan_settings_.model, rank_->plan().parameters, plan_settings_.batch.seq);
  return per_token * static_cast<double>(rank_->plan().micro_batch_tokens * rank_->plan().micro_batches);
}

/// Of the whole model's work, what a step does.
double Trainer::share_of_work(std::int64_t step) const {
  return is_whole(step) ? 1 : plan::compute_flops(rank_->plan_of(step)) / plan::compute_flops(rank_->plan());
}

StepMetrics Trainer::metrics_of(std::int64_t step, const StepResult& result, double data_s) const {
  const double step_s = static_cast<double>(result.duration_ns) * 1e-9;
  const auto tokens = static_cast<double>(plan_settings_.step_tokens());
  StepMetrics m{.step = step,
                .time_unix_s = static_cast<double>(unix_now_ns()) * 1e-9,
                .wall_s = static_cast<double>(now_ns() - began_ns_) * 1e-9,
                .loss = result.loss,
                .grad_norm = result.grad_norm};
  m.lr = learning_rate(settings_.schedule, step);
  m.skipped_steps = rank_->skipped_steps();
  m.tokens_seen = step * plan_settings_.step_tokens();
  m.step_s = step_s;
  m.tps_global = tokens / step_s;
  m.tps_device = m.tps_global / communicator_.size();
  m.tflops_device = flops_per_step() * share_of_work(step) / step_s * 1e-12;
  m.mem_active_peak_bytes = static_cast<double>(device_arena().high_water_bytes());
  m.mem_reserved_peak_bytes = static_cast<double>(device_arena().size_bytes());
  m.data_s = data_s;
  m.warmup = step == first_step_;
  if (is_traced(step)) m.set(totals_);
  return m;
}

void Trainer::report(const StepMetrics& metrics) {
  timer_.add(metrics);
  metrics_->write(metrics);
  if (metrics.step % settings_.log_freq == 0 || metrics.step == first_step_ || metrics.step == settings_.steps)
    print(console_line(metrics, settings_.steps, 0, timer_.eta_s(settings_.steps - metrics.step)));
}

void Trainer::count_collectives(const comm::Counters& before) {
  const comm::Counters after = rank_->engine().counters();
  collectives_ = {.all_gather = difference(after.all_gather, before.all_gather),
                  .reduce_scatter = difference(after.reduce_scatter, before.reduce_scatter),
                  .all_reduce = difference(after.all_reduce, before.all_reduce)};
}

std::int64_t Trainer::largest(std::int64_t value) const {
  const auto values = communicator_.all_gather_u64(static_cast<std::uint64_t>(value));
  return static_cast<std::int64_t>(std::ranges::max(values));
}

trace::Summary Trainer::summary() const {
  const double step_time_s = trace::median(step_times_s_);
  return {.collectives = collectives_,
          .arena_bytes = largest(device_arena().high_water_bytes()),
          .arena_touched_bytes = largest(rank_->engine().touched_bytes()),
          .host_arena_bytes = largest(rank_->engine().arena(plan::Space::host).high_water_bytes()),
          .rss_bytes = largest(resident_bytes()),
          .base_rss_bytes = largest(base_rss_bytes_),
          .step_time_s = step_time_s,
          .tflops_per_device = flops_per_step() / step_time_s * 1e-12,
          .exposed_comm_s = exposed_s_.empty() ? unknown : trace::median(exposed_s_)};
}

void Trainer::finish(std::int64_t last_step) {
  const trace::Summary s = summary();
  communicator_.barrier();  // nobody lets go of memory while another still measures its own
  if (trace_) trace_->close(s);
  if (!leads()) return;
  RunRecord& r = *record_;
  add_results(r, rank_->plan(), s);
  r["skipped_steps"] = rank_->skipped_steps();
  r["transport"] = communicator_.transport();
  r["kernel_choices"] = kernel_choices_;
  last_step < settings_.steps ? r.finish(fmt::format("stopped by SIGUSR1 after step {}, checkpoint saved", last_step),
                                         static_cast<int>(ExitCode::requeue))
                              : r.finish("done", 0);
  finished_ = true;
  if (last_step < first_step_) return;
  log_info("{:12} median step {}, {:.4f} TFLOP/s a rank, arena {} of which touched {}, process {}; {}",
           last_step < settings_.steps ? "stopped" : "done", duration_text(s.step_time_s), s.tflops_per_device,
           bytes_text(s.arena_bytes), bytes_text(s.arena_touched_bytes), bytes_text(s.rss_bytes),
           folder_->path().string());
}

void Trainer::print(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
  log_ << line << std::endl;
}

}  // namespace foreshard::train
