#include "train/metrics.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/units.hpp"

namespace foreshard::train {

namespace {

using Json = nlohmann::ordered_json;

/// `value` by a format with one field, or "n/a".
template <class... Args>
std::string known(double value, fmt::format_string<Args...> format, Args&&... args) {
  return std::isfinite(value) ? fmt::format(format, std::forward<Args>(args)...) : "n/a";
}

std::string rate(double tokens_per_second) {
  return known(tokens_per_second, "{}",
               count_text(std::isfinite(tokens_per_second) ? std::llround(tokens_per_second) : 0));
}

std::string memory(double bytes, double device_bytes) {
  if (!std::isfinite(bytes)) return "n/a";
  const std::string text = bytes_text(static_cast<std::int64_t>(bytes));
  return device_bytes > 0 ? fmt::format("{} ({:.0f}%)", text, 100 * bytes / device_bytes) : text;
}

int digits_of(std::int64_t number) { return static_cast<int>(std::to_string(number).size()); }

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const StepMetrics& m) {
  return {{"step", m.step},
          {"time_unix_s", number(m.time_unix_s)},
          {"wall_s", number(m.wall_s)},
          {"loss", number(m.loss)},
          {"loss_max", number(m.loss_max)},
          {"grad_norm", number(m.grad_norm)},
          {"lr", number(m.lr)},
          {"skipped_steps", m.skipped_steps},
          {"tokens_seen", m.tokens_seen},
          {"step_s", number(m.step_s)},
          {"tps_device", number(m.tps_device)},
          {"tps_global", number(m.tps_global)},
          {"tflops_device", number(m.tflops_device)},
          {"mfu_pct", number(m.mfu_pct)},
          {"mem_active_peak_bytes", number(m.mem_active_peak_bytes)},
          {"mem_reserved_peak_bytes", number(m.mem_reserved_peak_bytes)},
          {"compute_s", number(m.compute_s)},
          {"comm_s", number(m.comm_s)},
          {"comm_exposed_s", number(m.comm_exposed_s)},
          {"data_s", number(m.data_s)},
          {"idle_s", number(m.idle_s)},
          {"rank_skew_s", number(m.rank_skew_s)},
          {"warmup", m.warmup}};
}

}  // namespace

void StepMetrics::set(const trace::StepTotals& totals) {
  const auto busy_s = [&](plan::Lane lane) { return totals.lane_busy_ns[static_cast<std::size_t>(lane)] * 1e-9; };
  compute_s = busy_s(plan::Lane::compute);
  comm_s = busy_s(plan::Lane::gather) + busy_s(plan::Lane::reduce) + busy_s(plan::Lane::replicate);
  comm_exposed_s = totals.exposed_ns * 1e-9;
  idle_s = totals.idle_ns * 1e-9;
}

std::string console_line(const StepMetrics& m, std::int64_t steps, double device_bytes, double eta_s) {
  const double exposed_pct = 100 * m.comm_exposed_s / m.step_s;
  const std::string end = m.warmup ? "warm-up" : "eta " + duration_text(eta_s);
  return fmt::format(
      "step {:>{}}/{} | loss {:.4f} | grad_norm {:.3f} | lr {:.1e} | {} | tps {} ({} all) | tflops {} | mfu {} | "
      "memory {} | comm {} | {}",
      m.step, std::max(5, digits_of(steps)), steps, m.loss, m.grad_norm, m.lr, duration_text(m.step_s),
      rate(m.tps_device), rate(m.tps_global), known(m.tflops_device, "{:.2f}", m.tflops_device),
      known(m.mfu_pct, "{:.1f}%", m.mfu_pct), memory(m.mem_reserved_peak_bytes, device_bytes),
      known(exposed_pct, "{:.1f}% exposed", exposed_pct), end);
}

std::string validation_line(std::int64_t step, double loss, double seconds) {
  return fmt::format("val step {} | loss {:.4f} | {}", step, loss, duration_text(seconds));
}

void StepTimer::add(const StepMetrics& metrics) {
  constexpr double keep = 0.9;
  if (metrics.warmup || !std::isfinite(metrics.step_s)) return;
  mean_ = keep * mean_ + (1 - keep) * metrics.step_s;
  weight_ = keep * weight_ + (1 - keep);
}

double StepTimer::eta_s(std::int64_t steps_left) const {
  return weight_ == 0 ? unknown : mean_ / weight_ * static_cast<double>(steps_left);
}

MetricsFile::MetricsFile(const std::filesystem::path& path, const std::string& run_id)
    : file_(path, std::ios::app), path_(path) {
  if (file_.tellp() == 0) write_line(Json{{"schema", "foreshard-metrics"}, {"version", 1}, {"run_id", run_id}}.dump());
}

void MetricsFile::write(const StepMetrics& metrics) { write_line(json_of(metrics).dump()); }

void MetricsFile::write_validation(std::int64_t step, double loss, double seconds) {
  write_line(Json{{"step", step}, {"val_loss", number(loss)}, {"val_s", number(seconds)}}.dump());
}

void MetricsFile::write_line(const std::string& line) {
  file_ << line << '\n' << std::flush;
  if (!file_) throw LibraryError(fmt::format("writing {}: is the disk full?", path_.string()));
}

}  // namespace foreshard::train
