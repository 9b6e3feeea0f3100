#pragma once
#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "comm/mapping.hpp"
#include "engine/dispatch.hpp"
#include "engine/engine.hpp"
#include "engine/lane_thread.hpp"
#include "engine/product_routes.hpp"
#include "engine/pulse.hpp"

namespace foreshard::engine {

struct CpuOptions {
  int threads = 1;  ///< of the compute lane's OpenMP team
  /// Called once, by the lane whose op failed first, before anybody is told; should free the other ranks from waiting.
  std::function<void(std::exception_ptr)> on_failure = [](std::exception_ptr) {};
  /// Called on the op's lane before it runs; for tests that delay lanes.
  std::function<void(const plan::Op&)> before_op;
  Pulse* pulse = nullptr;  ///< where others see what this rank does; outlives the executor; null: nowhere
};

/// Carries out the plans of one rank on its processor cores: a thread per lane, kernels on the compute lane's team,
/// collectives through the communicator. All plans work in the same arenas.
class CpuExecutor : public Engine {
 public:
  CpuExecutor(const EngineSpec& spec, kernels::Backend& kernels, CpuOptions options);
  ~CpuExecutor() override;

  void begin_step(const plan::Plan& plan, const exec::StepContext& context, trace::Recorder* recorder) override;
  exec::Ticket issue(const exec::Instance& instance, std::span<const exec::Ticket> waits) override;
  void finish() override;

  LossFault loss_fault() const override { return dispatch_ ? dispatch_->loss_fault() : LossFault{}; }
  void read(const plan::Buffer& buffer, const Read& f) override { f(bytes(buffer)); }
  void change(const plan::Buffer& buffer, const Change& f) override { f(bytes(buffer)); }
  KernelChoices measure_kernels(const plan::Plan& plan) override { return measure_routes(plan, kernels_); }
  void use_kernels(const KernelChoices& choices, const plan::Plan& plan) override {
    use_routes(choices, plan, kernels_);
  }
  const Arena& arena(plan::Space space) const override { return arenas_.of(space); }
  std::int64_t touched_bytes() const override { return arenas_.device.touched_bytes(); }
  comm::Counters counters() const override { return communicator_.counters(); }

 private:
  using Task = LaneThread::Task;
  std::span<std::byte> bytes(const plan::Buffer& buffer);
  LaneThread& thread_of(plan::Lane lane);
  std::int64_t begin(const Task& task);
  void run(const Task& task, bool more);
  void execute(const Task& task, std::int64_t start_ns);
  void run_collective(const plan::Op& op);
  void all_gather(const plan::Op& op, comm::Group& group);
  std::uint64_t received_bytes(plan::OpKind kind) const;
  void record(const Task& task, std::int64_t start_ns, std::uint64_t received_before);
  void fail(std::exception_ptr error);

  comm::Communicator& communicator_;
  comm::Mapping host_memory_;
  Arenas arenas_;
  kernels::Backend& kernels_;
  CpuOptions options_;
  Pulse unseen_pulse_;
  Pulse& pulse_;
  int rank_;
  std::unique_ptr<comm::Group> gather_group_, inner_group_, reduce_group_, norm_group_, replica_group_, world_group_;

  // Of the current step.
  const plan::Plan* plan_ = nullptr;
  const exec::StepContext* context_ = nullptr;
  trace::Recorder* recorder_ = nullptr;
  std::unique_ptr<Dispatch> dispatch_;

  std::array<std::uint64_t, plan::lane_count> issued_{};
  Progress progress_;
  std::atomic<bool> failed_{false};
  std::mutex error_mutex_;
  std::exception_ptr error_;
  std::array<std::unique_ptr<LaneThread>, plan::lane_count> threads_;  // last: they use all of the above
};

/// The kernels outlive the engine.
MakeEngine on_cpu(kernels::Backend& kernels, CpuOptions options);

}  // namespace foreshard::engine
