#include "sim/runtimes/torch_step.hpp"

#include <memory>

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

  void update_all() {
    std::vector<Storage> denominators;
    for (const std::int64_t n : elements_) denominators.push_back(eager_.empty(n, DType::f32));
  }

  /// The name `denominator` holds the last one until the next is there, made by two operators.
  void update_one_by_one() {
    Storage denominator;
    for (const std::int64_t n : elements_) {
      const Storage root = eager_.empty(n, DType::f32);
      denominator = eager_.empty(n, DType::f32);
    }
  }

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

RunMemory live_memory(const TorchRun& run, int steps) {
  LiveBytes live;
  Eager eager(live, run.traits);
  Storage buffers = eager.empty(buffer_elements(run.model), DType::f32);
  const Storage tokens = eager.empty(run.batch.tokens(), DType::i64);
  const std::unique_ptr<Wrapper> wrapper = wrapped(eager, run);
  AdamW adamw(eager, wrapper->updated(), run.foreach);
  RunMemory memory{live.now, {}};
  for (int i = 0; i < steps; ++i) {
    StepMemory& step = memory.steps.emplace_back();
    live.restart();
    cast_buffers(buffers, run);
    Tensor loss = causal_lm_loss(eager, *wrapper, run.model, run.batch, tokens, run.recompute);
    step.after_forward = live.now;
    live.phase = StepPhase::backward;
    eager.autograd().run(loss, [&] { wrapper->end_backward(); });
    loss = {};
    live.phase = StepPhase::update;
    adamw.step();
    wrapper->zero_grad();
    step.peak = live.peak, step.peak_in = live.peak_in, step.after_step = live.now;
  }
  return memory;
}

}  // namespace foreshard::sim::torch
