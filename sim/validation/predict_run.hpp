#pragma once
#include "sim/closed_form/profile.hpp"
#include "sim/validation/published_run.hpp"

namespace foreshard::sim::validation {

/// The run with what its row leaves open: shards within a node and no recomputation, where its tensors fit; or else
/// shards over all GPUs, and recomputation of all blocks.
PublishedRun completed(PublishedRun run, const closed_form::Profile& profile);

/// How the run's software computes what is no matrix product: "eager", "compiled", "xla", "hand_written".
std::string style_of(const PublishedRun& run, const closed_form::Profile& profile);

/// Tokens per second and GPU of a published run, in closed form.
double predicted_tokens_per_s(const PublishedRun& run, const closed_form::Profile& profile);

/// Peak memory of the run's kind in bytes, in closed form: of live tensors, or of what the caching allocator holds.
double predicted_peak_bytes(const PublishedRun& run, const closed_form::Profile& profile);

/// Whether the run fits: its peak in the allocator's pieces, the context and communicators, within the GPU's memory.
/// What the allocator only keeps from other times it gives up before it fails.
bool fits(const PublishedRun& run, const closed_form::Profile& profile);

/// The best rate of products of halves, TFLOPS, which printed MFU are of.
double peak_tflops(const PublishedRun& run, const closed_form::Profile& profile);

}  // namespace foreshard::sim::validation
