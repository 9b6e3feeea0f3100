#pragma once
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "engine/cuda/attention_choices.hpp"
#include "engine/cuda/collectives.hpp"
#include "engine/cuda/compute.hpp"
#include "engine/cuda/device.hpp"
#include "engine/cuda/graph.hpp"
#include "engine/cuda/op_timer.hpp"
#include "engine/cuda/prepared.hpp"
#include "engine/cuda/product_algorithms.hpp"
#include "engine/cuda/progress.hpp"
#include "engine/cuda/step_memory.hpp"
#include "engine/cuda_engine.hpp"

namespace foreshard::engine::cuda {

/// Carries out the plans of one rank on its CUDA device: a stream per lane, events for the waits, and no host
/// synchronisation inside a step. All collectives are issued in the plan's order by the one thread that issues steps.
///
/// A step that is traced is issued op by op, with events around each. Any other is one launch of a graph, which its
/// plan's first such step captures from all its segments: so they overlap as the plan permits. A very long step is
/// several graphs, one behind the other, cut between micro-batches.
class Executor : public Engine {
 public:
  Executor(const EngineSpec& spec, const CudaOptions& options);
  ~Executor() override;

  void begin_step(const plan::Plan& plan, const exec::StepContext& context, trace::Recorder* recorder) override;
  exec::Ticket issue(const exec::Instance& instance, std::span<const exec::Ticket> waits) override;
  void finish() override;
  LossFault loss_fault() const override { return loss_fault_; }

  void read(const plan::Buffer& buffer, const Read& f) override;
  void change(const plan::Buffer& buffer, const Change& f) override;
  KernelChoices measure_kernels(const plan::Plan& plan) override;
  void use_kernels(const KernelChoices& choices, const plan::Plan& plan) override;
  bool can_use(const KernelChoices& choices) const override;
  const Arena& arena(plan::Space space) const override { return arenas_.of(space); }
  std::int64_t touched_bytes() const override { return device_memory_.size_bytes(); }
  comm::Counters counters() const override { return counters_; }

 private:
  /// A lane's stream, and an event for each op of it that others may still wait for.
  struct Queue {
    Stream stream;
    std::unique_ptr<kernels::cuda::Kernels> kernels;
    std::uint64_t issued = 0;
    std::vector<Event> events;
    const Event& event(std::uint64_t sequence) const { return events[sequence % events.size()]; }
  };
  Queue& queue_of(plan::Lane lane) { return queues_[static_cast<std::size_t>(lane)]; }
  Queue& compute() { return queue_of(plan::Lane::compute); }
  void make_queues(const plan::ArenaRange& workspace);
  std::string chooser() const;
  Prepared& prepared(const plan::Plan& plan);
  bool replays() const { return options_.graphs && !recorder_; }
  void launch_graphs();
  void begin_capture();
  void end_capture();
  void end_segment(const plan::Op& op);
  void wait_for(Queue& queue, plan::Lane lane, std::span<const exec::Ticket> waits);
  void enqueue(const exec::Instance& instance, Queue& queue);
  void count(const plan::Op& op);
  void await_device();
  void poll();
  [[noreturn]] void fail(const std::exception& error);

  comm::Communicator& ranks_;
  CudaOptions options_;
  Pulse unseen_pulse_;
  Pulse& pulse_;
  Device device_;
  std::int64_t workspace_bytes_;
  DeviceMemory device_memory_;
  PinnedMemory host_memory_;
  Arenas arenas_;
  Collectives collectives_;
  StepMemory step_;
  Progress progress_;
  OpTimer timer_;
  std::vector<Queue> queues_;                        // by lane
  std::vector<const Stream*> streams_;               // of the queues; compute first
  std::vector<std::unique_ptr<Prepared>> prepared_;  // by plan, in order of their first steps
  KernelChoices choices_;
  comm::Counters counters_;
  bool failed_ = false;

  // Of the current step.
  const plan::Plan* plan_ = nullptr;
  Prepared* now_ = nullptr;
  std::int64_t number_ = 0;
  trace::Recorder* recorder_ = nullptr;
  std::optional<Capture> capture_;
  std::int64_t captured_ops_ = 0;
  bool replaying_ = false;                                      // the whole step was launched
  std::array<std::uint64_t, plan::lane_count> before_graph_{};  // ops issued
  LossFault loss_fault_;
};

}  // namespace foreshard::engine::cuda
