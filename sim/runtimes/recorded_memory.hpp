#pragma once
#include <unordered_map>

#include "sim/allocator/peak.hpp"
#include "sim/runtimes/cached_memory.hpp"
#include "sim/runtimes/torch_job.hpp"

namespace foreshard::sim::torch {

/// The same as the memory that it wraps, and a list of all that happens to it, by phase and unit.
class RecordedMemory final : public Place {
 public:
  /// Both must outlive this. What `memory` holds already is recorded as workspaces of `device`.
  RecordedMemory(CachedMemory& memory, const Gpu& gpu, const Device& device);

  void* allocate(std::int64_t bytes) override;
  void free(void* block, Recorded recorded) override;
  /// The steps that follow are of the phases init, then forward, backward and update in turn. Classes of memory are
  /// told by where and for how long it lives (see `tell_classes`).
  allocator::EventList events() const;

 private:
  void note_phase();
  std::uint32_t note_allocation(std::int64_t bytes, allocator::Label label);

  CachedMemory& memory_;
  const Gpu& gpu_;
  allocator::EventList list_;
  std::unordered_map<void*, std::uint32_t> numbers_;
  std::uint32_t made_ = 0;
};

/// Gives every allocation its class: of the gather streams, gathered; of those that reduce, gradients; else by the
/// phase that it is made in and the one that it dies in. Made in init, parameters; within one phase, temporaries; from
/// forward on, activations; from backward on, gradients; from the update on, optimizer.
void tell_classes(allocator::EventList& list);

/// Runs the job's first steps and explains the peak of its memory, or where it ends.
allocator::PeakReport explain_memory(const TorchJob& job, const Cluster& cluster);

}  // namespace foreshard::sim::torch
