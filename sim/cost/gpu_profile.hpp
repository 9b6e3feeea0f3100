#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "sim/machine.hpp"

namespace foreshard::sim::cost {

/// The numbers of a GPU that the time of a kernel depends on. FLOP/s, bytes, bytes per second, one direction.
struct GpuRates {
  std::string name;       ///< e.g. "H100-SXM5-80GB"
  std::string arch;       ///< "sm_90", "gfx942"
  double half_flops = 0;  ///< dense peak of bf16 and f16, accumulated in f32
  double tf32_flops = 0;  ///< 0 where there is none
  double f32_flops = 0;   ///< without matrix units
  int sms = 1;            ///< streaming multiprocessors, or compute units
  double hbm_bytes_per_s = 1;
  double l2_bytes = 0;
};

/// How an f32 matrix product is computed, or a narrower one.
enum class Math { half, tf32, f32 };

/// Where a kernel runs: alone in a benchmark, or in a step whose queue is full and which the power limit governs.
enum class Running { isolated, in_step };

/// A quantity for some architectures, and for the others.
struct ByArch {
  std::vector<std::pair<std::string, Quantity>> known;
  Quantity other;
  const Quantity& of(std::string_view arch) const;
};

/// Rate of an attention kernel: part · peak · length / (length + half_length).
struct AttentionRate {
  std::string kernel, arch;
  int head = 0;  ///< width
  bool causal = false;
  double half_length = 0;
  Quantity part;
};

/// Constants of kernels on GPUs, as sim/profiles/gpu_kernels.json holds them: properties of hardware and libraries,
/// each with its source. sim/profiles/fit_gpu_kernels.py fits them to tables of single kernels.
struct GpuProfile {
  struct Gemm {
    Quantity start_s, tile_half_area, fill_depth, split_start_s, split_bytes_per_s;
    ByArch rate, sustained_part;
    Quantity tf32_part, f32_part;
    Quantity training_part;  ///< of the sustained rate, among the other kernels of a PyTorch step
  } gemm;
  std::vector<AttentionRate> attention;
  Quantity bytes_per_score, bytes_per_score_causal, attention_backward_part;
  Quantity hbm_part, l2_speedup, memory_start_s, hidden_start_s;
  Quantity compiled_traffic;  ///< of what eager operators on elements move, the part that compiled ones do
  Quantity eager_issue_s, compiled_issue_s, graph_issue_s;  ///< host time of an operator
  Quantity collective_issue_s;                              ///< the same of a collective
  Quantity retry_s_per_gib;  ///< that an allocation retry gives back to the driver, in a job of several ranks
  Quantity jitter_sigma;     ///< of a rank's compute time, relative
};

/// The profile that is built in.
const GpuProfile& gpu_profile();

/// Throws InputError (bad_input) that names `path` and what is wrong.
GpuProfile parse_gpu_profile(std::string_view text, const std::string& path);

/// Time that passes before a kernel does its first work.
double start_seconds(const GpuProfile& profile, Running running, const Quantity& isolated_s);

}  // namespace foreshard::sim::cost
