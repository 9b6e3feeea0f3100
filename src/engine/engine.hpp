#pragma once
#include <functional>
#include <memory>
#include <span>

#include "comm/communicator.hpp"
#include "engine/arena.hpp"
#include "engine/kernel_choices.hpp"
#include "engine/loss_fault.hpp"
#include "exec/executor.hpp"
#include "exec/step_context.hpp"
#include "plan/query.hpp"
#include "trace/recorder.hpp"

namespace foreshard::engine {

/// One rank's device: its arenas, and the executor that carries plans out in them. All that training knows of it.
class Engine : public exec::Executor {
 public:
  /// What the next ops work on; nothing may be in flight. `recorder` may be null. All three outlive the step.
  virtual void begin_step(const plan::Plan& plan, const exec::StepContext& context, trace::Recorder* recorder) = 0;

  /// Where this rank's loss stopped being finite in the last step; read after `finish`.
  virtual LossFault loss_fault() const = 0;

  // Between two steps: a buffer's bytes as the host can reach them, where they lie or as a copy that lives as long as
  // the call of `f`. What `f` changes is there when `change` returns.
  using Read = std::function<void(std::span<const std::byte>)>;
  using Change = std::function<void(std::span<std::byte>)>;
  virtual void read(const plan::Buffer& buffer, const Read& f) = 0;
  virtual void change(const plan::Buffer& buffer, const Change& f) = 0;

  /// Which kernels are fastest for a plan, measured on this rank: not the same on all, nor at all times.
  virtual KernelChoices measure_kernels(const plan::Plan& plan) = 0;
  /// Makes steps of the plan run what was chosen.
  virtual void use_kernels(const KernelChoices& choices, const plan::Plan& plan) = 0;
  /// False where they were made for another device, library or workspace than this rank's.
  virtual bool can_use(const KernelChoices&) const { return true; }

  virtual const Arena& arena(plan::Space space) const = 0;
  virtual std::int64_t touched_bytes() const = 0;  ///< of the device arena, what holds memory
  virtual comm::Counters counters() const = 0;     ///< of this rank's collectives so far
};

/// What a rank's engine is made of, beside its device.
struct EngineSpec {
  const plan::Mesh& mesh;
  comm::Communicator& communicator;
  std::int64_t device_bytes = 0, host_bytes = 0;  ///< of the arenas
  plan::ArenaRange workspace = {};                ///< of the device's arena, as all plans have it
};

/// Collective: makes the groups of the mesh. The communicator outlives the engine.
using MakeEngine = std::function<std::unique_ptr<Engine>(const EngineSpec&)>;

}  // namespace foreshard::engine
