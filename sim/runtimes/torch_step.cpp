#include "sim/runtimes/torch_step.hpp"

#include <memory>

#include "sim/runtimes/ddp.hpp"
#include "sim/runtimes/fsdp1.hpp"
#include "sim/runtimes/fsdp2.hpp"
#include "sim/runtimes/regrouped.hpp"
#include "sim/runtimes/torch_optimizer.hpp"
#include "sim/runtimes/zero2.hpp"
#include "sim/runtimes/zero3.hpp"

namespace foreshard::sim::torch {
namespace {

std::unique_ptr<Wrapper> wrapped(Eager& eager, const TorchRun& run, const UnitShapes& shapes) {
  switch (run.runtime) {
    case Runtime::fsdp1:
      return std::make_unique<Fsdp1>(eager, shapes, run.wrap);
    case Runtime::ddp:
      return std::make_unique<Ddp>(eager, shapes, run.wrap);
    case Runtime::zero1:
    case Runtime::zero2:
      return std::make_unique<Zero2>(eager, shapes, run.wrap);
    case Runtime::zero3:
      return std::make_unique<Zero3>(eager, shapes, run.wrap);
    case Runtime::fsdp2:
      break;
  }
  return std::make_unique<Fsdp2>(eager, shapes, run.wrap);
}

std::unique_ptr<Wrapper> wrapped(Eager& eager, const TorchRun& run) {
  const UnitShapes blocks = unit_shapes(run.model);
  if (run.wrap.blocks_per_unit == 1) return wrapped(eager, run, blocks);
  return std::make_unique<Regrouped>(blocks, run.wrap.blocks_per_unit,
                                     [&](const UnitShapes& units) { return wrapped(eager, run, units); });
}

/// The model's buffers too, in the first forward.
void cast_buffers(Storage& buffers, const Wrapper& wrapper, const TorchRun& run) {
  if (wrapper.casts_buffers() && run.wrap.mixed)
    buffers.resize(buffer_elements(run.model) * size_bytes(run.wrap.compute));
}

}  // namespace

/// One rank's training loop.
class TorchSteps::Training {
 public:
  Training(const TorchRun& run, Gpu& gpu, Place* place)
      : run_(run),
        live_{.place = place},
        eager_(live_, run.traits, &gpu),
        buffers_(eager_.empty(buffer_elements(run.model), DType::f32)),
        inputs_(inputs(eager_, run.model, run.batch)),
        wrapper_(wrapped(eager_, run)),
        optimizer_(eager_, wrapper_->updated(), run.wrap.weights, run.update, run.loop) {}

  std::int64_t live_bytes() const { return live_.now; }

  StepMemory step() {
    StepMemory memory;
    live_.restart();
    for (int k = 1; k <= run_.micro_batches; ++k) memory.after_forward = micro_batch(k == run_.micro_batches);
    live_.phase = StepPhase::update;
    eager_.gpu().begin_update();
    if (run_.clip && run_.runtime == Runtime::fsdp1) norm_ = eager_.empty(1, DType::f32);
    wrapper_->before_update();
    optimizer_.step();
    wrapper_->after_update();
    if (!run_.keeps_gradients) wrapper_->zero_grad();
    memory.peak = live_.peak, memory.peak_in = live_.peak_in, memory.after_step = live_.now;
    return memory;
  }

 private:
  /// Live bytes after its forward.
  std::int64_t micro_batch(bool last) {
    live_.phase = StepPhase::forward;
    eager_.gpu().begin_micro_batch();
    wrapper_->begin_micro_batch(last || !run_.no_sync, last);
    cast_buffers(buffers_, *wrapper_, run_);
    const Tensor loss = torch::loss(eager_, *wrapper_, run_.model, run_.batch, inputs_, run_.recompute);
    const std::int64_t after_forward = live_.now;
    live_.phase = StepPhase::backward;
    eager_.gpu().begin_backward();
    eager_.autograd().run(loss, [this] { wrapper_->end_backward(); });
    return after_forward;
  }

  TorchRun run_;
  LiveBytes live_;
  Eager eager_;
  Storage buffers_, norm_;
  std::vector<Storage> inputs_;
  std::unique_ptr<Wrapper> wrapper_;
  Optimizer optimizer_;
};

TorchSteps::TorchSteps(const TorchRun& run, Gpu& gpu, Place* place)
    : gpu_(gpu), training_(std::make_unique<Training>(run, gpu, place)) {}
TorchSteps::~TorchSteps() = default;
std::int64_t TorchSteps::live_bytes() const { return training_->live_bytes(); }

std::pair<StepMemory, StepTimes> TorchSteps::step() {
  gpu_.begin_step();
  const StepMemory memory = training_->step();
  return {memory, gpu_.end_step()};
}

TimedRun timed_run(const TorchRun& run, const Cluster& cluster, const Software& software, int steps) {
  GpuKernels kernels(cluster, software, run.wrap.world, run.wrap.replicas);
  Gpu gpu(kernels, software);
  TorchSteps training(run, gpu);
  TimedRun timed{{training.live_bytes(), {}}, {}};
  for (int i = 0; i < steps; ++i) {
    const auto [memory, times] = training.step();
    timed.memory.steps.push_back(memory), timed.times.push_back(times);
  }
  return timed;
}

RunMemory live_memory(const TorchRun& run, int steps) {
  Gpu gpu;
  TorchSteps training(run, gpu);
  RunMemory memory{training.live_bytes(), {}};
  for (int i = 0; i < steps; ++i) memory.steps.push_back(training.step().first);
  return memory;
}

}  // namespace foreshard::sim::torch
