#pragma once
#include <optional>
#include <variant>

#include "sim/closed_form/profile.hpp"
#include "sim/validation/published_run.hpp"

namespace foreshard::sim::validation {

/// What simulated steps of PyTorch's FSDP say of a run.
struct EventLevel {
  double tokens_per_s = 0;           ///< of one GPU
  std::optional<double> peak_bytes;  ///< of the row's kind; absent where operators are compiled
};

/// Simulates a steady step of FSDP1 or FSDP2 around eager blocks as Hugging Face's GPT-2 and Llama have them, with the
/// caching allocator; of many micro-batches two, after which all are alike. No constant is fitted to these runs. The
/// cluster is the catalogue's of the GPU's generation, with the row's own GPU, nodes and network. Skipped is what is
/// not simulated: other runtimes and blocks, adapters, offload, fp8, blocks of which a part is recomputed, and runs
/// that need more memory than there is.
std::variant<EventLevel, Skip> event_level(const PublishedRun& run, const closed_form::Profile& profile);

}  // namespace foreshard::sim::validation
