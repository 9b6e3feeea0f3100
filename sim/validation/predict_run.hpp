#pragma once
#include "sim/closed_form/profile.hpp"
#include "sim/validation/published_run.hpp"

namespace foreshard::sim::validation {

/// The run with what its row leaves open: shards within a node and no recomputation, where its tensors fit; or else
/// shards over all GPUs, and recomputation of all blocks.
PublishedRun completed(PublishedRun run, const closed_form::Profile& profile);

/// Tokens per second and GPU of a published run, in closed form.
double predicted_tokens_per_s(const PublishedRun& run, const closed_form::Profile& profile);

/// Peak memory of the run's kind in bytes, in closed form: of live tensors, or of what the caching allocator holds.
double predicted_peak_bytes(const PublishedRun& run, const closed_form::Profile& profile);

/// Whether the run fits: what its allocator holds (or, of `kind` allocated, its tensors alone), the context and
/// communicators, within the GPU's memory.
bool fits(PublishedRun run, const closed_form::Profile& profile, PeakKind kind = PeakKind::reserved);

/// The best rate of products of halves, TFLOPS, which printed MFU are of.
double peak_tflops(const PublishedRun& run, const closed_form::Profile& profile);

}  // namespace foreshard::sim::validation
