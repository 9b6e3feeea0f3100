#include "sim/runtimes/torch_step.hpp"

#include <array>
#include <memory>
#include <numeric>

#include "sim/runtimes/fsdp1.hpp"
#include "sim/runtimes/fsdp2.hpp"

namespace foreshard::sim::torch {
namespace {

/// torch.optim.AdamW: two moments and a step count for each tensor, made by the first update.
class AdamW {
 public:
  AdamW(Eager& eager, std::vector<std::int64_t> elements, bool foreach)
      : eager_(eager), elements_(std::move(elements)), foreach_(foreach) {}

  void step() {
    if (state_.empty()) make_state();
    foreach_ ? update_all() : update_one_by_one();
  }

 private:
  void make_state() {
    for (const std::int64_t n : elements_)
      for (const std::int64_t part : {std::int64_t{1}, n, n}) state_.push_back(eager_.empty(part, DType::f32));
  }

  /// Kernels over all tensors: decay, both moments, denominator in three steps, quotient. Bytes of an element of each.
  void update_all() {
    std::vector<Storage> denominators;
    for (const std::int64_t n : elements_) denominators.push_back(eager_.empty(n, DType::f32));
    if (eager_.traits().second_denominator)
      for (const std::int64_t n : elements_) denominators.push_back(eager_.empty(n, DType::f32));
    const std::int64_t all = std::reduce(elements_.begin(), elements_.end());
    for (const std::int64_t moved : kernel_bytes) eager_.gpu().copies(moved * all, model::OpKind::adamw);
  }

  /// The name `denominator` holds the last one until the next is there, made by two operators.
  void update_one_by_one() {
    Storage denominator;
    for (const std::int64_t n : elements_) {
      const Storage root = eager_.empty(n, DType::f32);
      denominator = eager_.empty(n, DType::f32);
      for (const std::int64_t moved : kernel_bytes) eager_.gpu().copies(moved * n, model::OpKind::adamw);
    }
  }

  static constexpr std::array<std::int64_t, 8> kernel_bytes{8, 12, 8, 12, 8, 8, 8, 16};

  Eager& eager_;
  std::vector<std::int64_t> elements_;
  bool foreach_;
  std::vector<Storage> state_;
};

std::unique_ptr<Wrapper> wrapped(Eager& eager, const TorchRun& run) {
  const UnitShapes shapes = unit_shapes(run.model);
  if (run.runtime == Runtime::fsdp1) return std::make_unique<Fsdp1>(eager, shapes, run.wrap);
  return std::make_unique<Fsdp2>(eager, shapes, run.wrap);
}

/// FSDP1 with bf16 casts the model's buffers too, in the first forward.
void cast_buffers(Storage& buffers, const TorchRun& run) {
  if (run.runtime == Runtime::fsdp1) buffers.resize(buffer_elements(run.model) * size_bytes(run.wrap.compute));
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
        adamw_(eager_, wrapper_->updated(), run.foreach) {}

  std::int64_t live_bytes() const { return live_.now; }

  StepMemory step() {
    StepMemory memory;
    live_.restart();
    for (int k = 1; k <= run_.micro_batches; ++k) memory.after_forward = micro_batch(k == run_.micro_batches);
    live_.phase = StepPhase::update;
    eager_.gpu().begin_update();
    adamw_.step();
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
    cast_buffers(buffers_, run_);
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
  Storage buffers_;
  std::vector<Storage> inputs_;
  std::unique_ptr<Wrapper> wrapper_;
  AdamW adamw_;
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
