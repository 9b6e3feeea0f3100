#include "sim/runtimes/recorded_memory.hpp"

#include <cmath>

namespace foreshard::sim::torch {
namespace {

using allocator::Event;
using allocator::Label;
using allocator::MemoryClass;

constexpr int recorded_steps = 3;
const std::string init = "init", phase_names[] = {"forward", "backward", "update"};

MemoryClass class_by_phase(const std::string& made, const std::string& freed) {
  if (made == init) return MemoryClass::parameters;
  if (made == freed) return MemoryClass::temporaries;
  if (made == phase_names[0]) return MemoryClass::activations;
  return made == phase_names[1] ? MemoryClass::gradients : MemoryClass::optimizer;
}

MemoryClass class_of_stream(allocator::Stream stream) {
  switch (static_cast<Stream>(stream)) {
    case Stream::pre_unshard:
    case Stream::unshard:
      return MemoryClass::gathered;
    case Stream::reduce:
    case Stream::replicate:
      return MemoryClass::gradients;
    case Stream::compute:
      break;
  }
  return MemoryClass::other;
}

}  // namespace

RecordedMemory::RecordedMemory(CachedMemory& memory, const Gpu& gpu, const Device& device)
    : memory_(memory), gpu_(gpu) {
  note_phase();
  for (int thread = 0; thread < 2; ++thread)
    note_allocation(allocator::blas_workspace_bytes(device), allocator::label_of(MemoryClass::workspace));
  note_allocation(allocator::blaslt_workspace_bytes(device), allocator::label_of(MemoryClass::workspace));
}

void RecordedMemory::note_phase() {
  const bool started = gpu_.step_is_begun();
  const std::string& phase = started ? phase_names[static_cast<int>(gpu_.phase())] : init;
  if (!list_.phases.empty() && list_.phases.back() == phase) return;
  list_.events.push_back(
      {.kind = Event::Kind::phase, .block = static_cast<std::uint32_t>(list_.phases.size()), .at = gpu_.time().host()});
  list_.phases.push_back(phase);
}

std::uint32_t RecordedMemory::note_allocation(std::int64_t bytes, Label label) {
  list_.events.push_back({.kind = Event::Kind::allocate,
                          .stream = static_cast<allocator::Stream>(gpu_.current()),
                          .block = made_,
                          .label = label,
                          .bytes = bytes,
                          .at = gpu_.time().host()});
  return made_++;
}

void* RecordedMemory::allocate(std::int64_t bytes) {
  note_phase();
  const int unit = gpu_.step_is_begun() ? static_cast<int>(gpu_.unit()) : allocator::no_unit;
  const std::uint32_t number = note_allocation(bytes, allocator::label_of(MemoryClass::other, unit));
  void* block = memory_.allocate(bytes);
  numbers_[block] = number;
  return block;
}

void RecordedMemory::free(void* block, Recorded recorded) {
  note_phase();
  const auto found = numbers_.find(block);
  list_.events.push_back({.kind = Event::Kind::free,
                          .block = found->second,
                          .at = gpu_.time().host(),
                          .until = recorded.none() ? 0 : passed_by(gpu_.time(), recorded)});
  numbers_.erase(found);
  memory_.free(block, recorded);
}

allocator::EventList RecordedMemory::events() const {
  allocator::EventList list = list_;
  tell_classes(list);
  return list;
}

void tell_classes(allocator::EventList& list) {
  std::vector<std::pair<std::size_t, std::string>> made;  // by block: the event and its phase
  std::vector<std::string> freed;
  std::string phase;
  for (std::size_t i = 0; i < list.events.size(); ++i) {
    const Event& event = list.events[i];
    if (event.kind == Event::Kind::phase) phase = list.phases[event.block];
    if (event.kind == Event::Kind::allocate) made.resize(event.block + 1), made[event.block] = {i, phase};
    if (event.kind == Event::Kind::free) freed.resize(made.size()), freed[event.block] = phase;
  }
  freed.resize(made.size());
  for (std::size_t block = 0; block < made.size(); ++block) {
    Event& event = list.events[made[block].first];
    if (class_of(event.label) == MemoryClass::workspace) continue;
    const MemoryClass by_stream = class_of_stream(event.stream);
    event.label = allocator::label_of(
        by_stream != MemoryClass::other ? by_stream : class_by_phase(made[block].second, freed[block]),
        allocator::unit_of(event.label));
  }
}

allocator::PeakReport explain_memory(const TorchJob& job, const Cluster& cluster) {
  GpuKernels kernels(cluster, job.software, job.run.wrap.world, job.run.wrap.replicas);
  Gpu gpu(kernels, job.software);
  allocator::ReplayOptions options;
  options.settings = job.allocator, options.stalls_shift = false;
  options.device_bytes = std::llround(cluster.device.memory_bytes.value);
  options.outside_bytes =
      outside_memory(cluster, job.software, job.run.wrap.world, job.run.wrap.replicas, regathers_of(job.run)).total();
  allocator::CachingAllocator allocator(options.settings, options.device_bytes, options.outside_bytes);
  CachedMemory cached(allocator, gpu, cluster.device);
  RecordedMemory memory(cached, gpu, cluster.device);
  allocator::EventList events;
  try {
    TorchSteps steps(job.run, gpu, &memory);
    for (int i = 0; i < recorded_steps; ++i) steps.step();
    events = memory.events();
  } catch (const DeviceIsFull&) {
    events = memory.events();
  }
  allocator::PeakReport report = allocator::explain_peak(events, options);
  if (job.run.runtime == Runtime::ddp)  // it has no shards, and whole gradients in any case
    std::erase_if(report.knobs, [](const allocator::Knob& knob) {
      return knob.name == "twice the shards" || knob.name == "reducing gradients in every micro-batch";
    });
  return report;
}

}  // namespace foreshard::sim::torch
