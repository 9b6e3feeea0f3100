#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/settings.hpp"
#include "train/checkpoint_save.hpp"

namespace foreshard::train {

/// A small training run whose ranks are threads: dropout, shuffled rows, a few steps an epoch.
struct Job {
  plan::Mesh mesh{1, 1, 2};
  plan::Keep keep_gathered = plan::Keep::visit;
  plan::Accumulation accumulation = plan::Accumulation::reduce;
  plan::Offload offload;
  bool kept_in_bf16 = false;
  plan::PartialSteps partial;
  int micro_batches = 1;
  std::int64_t layers = 2, width = 12, heads = 3;
  std::int64_t steps = 7;
  std::filesystem::path data;                     ///< a token shard; `write_tokens` makes one
  std::filesystem::path folder;                   ///< of checkpoints
  std::vector<std::int64_t> save_after;           ///< steps
  std::vector<std::filesystem::path> candidates;  ///< to resume from, newest first
  std::int64_t keep = 0;
  std::function<void(int rank, std::string_view point)> at_point;
};

/// What a job did, and the bytes it ended with.
struct JobOutcome {
  std::int64_t resumed_step = 0;
  std::vector<std::filesystem::path> refused;
  std::vector<double> losses, grad_norms;     ///< of the steps it ran
  std::vector<std::vector<std::byte>> state;  ///< by rank: all state buffers
};

void write_tokens(const std::filesystem::path& path);

/// Throws what the first failing rank throws.
JobOutcome run(const Job& job);

}  // namespace foreshard::train
