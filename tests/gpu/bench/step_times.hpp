#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace foreshard::gpu_bench {

/// A model's training step on one device: a preset, rows of `seq` tokens, and how many steps are timed.
struct Job {
  std::string preset;
  int rows = 1, seq = 1024, steps = 20;
  bool also_by_op = false;  ///< and with graphs off, by an engine of its own
};

/// The keys of `foreshard-plan` and `foreshard-train` that say the same, beside the preset: parameters of bf16, a
/// vocabulary of 50304.
std::vector<std::string> keys_of(const Job& job);

/// Trains on the current device and writes one traced step to `trace_path` (which must not exist): {"model", "rows",
/// "seq", "parameters", "flops" (of the model, of one step), "step_s", "host_s" (of a step: until everything is
/// queued), "by_op": {"step_s", "host_s"}, "plan_arena_bytes", "arena_bytes", "high_water_bytes", and of the device's
/// memory, as cudaMemGetInfo sees it, what making the engine took ("engine_bytes") and what is used in the end
/// ("used_bytes"), "first_loss", "last_loss"}.
nlohmann::json step_times(const Job& job, const std::string& trace_path);

}  // namespace foreshard::gpu_bench
