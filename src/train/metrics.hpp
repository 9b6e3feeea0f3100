#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "trace/analysis.hpp"

namespace foreshard::train {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// What one step achieved. A NaN is "not known": "n/a" on the console, null in the file.
struct StepMetrics {
  std::int64_t step = 0;                           ///< from 1
  double time_unix_s = unknown, wall_s = unknown;  ///< at the end of the step; since the start of training
  double loss = unknown, loss_max = unknown;       ///< mean over valid tokens of all ranks; largest of the ranks' means
  double grad_norm = unknown, lr = unknown;
  std::int64_t skipped_steps = 0;                                       ///< so far, because they were not finite
  std::int64_t tokens_seen = 0;                                         ///< all ranks, up to and including this step
  double step_s = unknown, tps_device = unknown, tps_global = unknown;  ///< tokens per second
  double tflops_device = unknown, mfu_pct = unknown;
  double mem_active_peak_bytes = unknown, mem_reserved_peak_bytes = unknown;
  double compute_s = unknown, comm_s = unknown, comm_exposed_s = unknown, data_s = unknown, idle_s = unknown;
  double rank_skew_s = unknown;
  bool warmup = false;  ///< first step: excluded from averages

  void set(const trace::StepTotals& totals);  ///< times of lanes, of a recorded step
};

/// The console's line of a step, of `steps` in all, e.g.
///   step   120/2000 | loss 3.2145 | grad_norm 0.812 | lr 3.0e-04 | 182.4 ms | tps 5,614 (44,912 all) | tflops 12.31 |
///   mfu 8.1% | memory 3.12 GiB (39%) | comm 11.2% exposed | eta 5m43s
/// `tps` is per rank, in brackets of all. Memory is the reserved peak, its share that of `device_bytes` (0 = not
/// known). Exposed is comm_exposed_s / step_s. Plain text, no line end; the warm-up step ends in "| warm-up" instead of
/// eta.
std::string console_line(const StepMetrics& metrics, std::int64_t steps, double device_bytes, double eta_s);

/// "val step 120 | loss 3.30 | 1.9 s"
std::string validation_line(std::int64_t step, double loss, double seconds);

/// Mean of recent steps, exponential with bias correction, for the time left. Warm-up steps do not count.
class StepTimer {
 public:
  void add(const StepMetrics& metrics);
  /// Seconds for `steps_left` more; NaN before the first counted step.
  double eta_s(std::int64_t steps_left) const;

 private:
  double mean_ = 0, weight_ = 0;
};

/// metrics.jsonl: one object a line, each flushed. The first is {"schema": "foreshard-metrics", "version": 1, "run_id":
/// …}.
class MetricsFile {
 public:
  /// Throws LibraryError if the file cannot be written. Appends to a file that exists, without a second header.
  MetricsFile(const std::filesystem::path& path, const std::string& run_id);
  void write(const StepMetrics& metrics);
  void write_validation(std::int64_t step, double loss, double seconds);

 private:
  void write_line(const std::string& line);
  std::ofstream file_;
  std::filesystem::path path_;
};

}  // namespace foreshard::train
