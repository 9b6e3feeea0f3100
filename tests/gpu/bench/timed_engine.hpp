#pragma once
#include "base/clock.hpp"
#include "engine/engine.hpp"

namespace foreshard::gpu_bench {

/// An engine that notes how long the host takes to queue each step: from its begin until it has nothing left to do but
/// wait.
class TimedEngine final : public engine::Engine {
 public:
  TimedEngine(std::unique_ptr<engine::Engine> engine, std::vector<double>& host_s)
      : engine_(std::move(engine)), host_s_(host_s) {}

  void begin_step(const plan::Plan& plan, const exec::StepContext& context, trace::Recorder* recorder) override {
    began_ns_ = now_ns();
    engine_->begin_step(plan, context, recorder);
  }
  exec::Ticket issue(const exec::Instance& instance, std::span<const exec::Ticket> waits) override {
    return engine_->issue(instance, waits);
  }
  void finish() override {
    host_s_.push_back(static_cast<double>(now_ns() - began_ns_) * 1e-9);
    engine_->finish();
  }
  engine::LossFault loss_fault() const override { return engine_->loss_fault(); }
  void read(const plan::Buffer& buffer, const Read& f) override { engine_->read(buffer, f); }
  void change(const plan::Buffer& buffer, const Change& f) override { engine_->change(buffer, f); }
  engine::KernelChoices measure_kernels(const plan::Plan& plan) override { return engine_->measure_kernels(plan); }
  bool can_use(const engine::KernelChoices& choices) const override { return engine_->can_use(choices); }
  void use_kernels(const engine::KernelChoices& choices, const plan::Plan& plan) override {
    engine_->use_kernels(choices, plan);
  }
  const engine::Arena& arena(plan::Space space) const override { return engine_->arena(space); }
  std::int64_t touched_bytes() const override { return engine_->touched_bytes(); }
  comm::Counters counters() const override { return engine_->counters(); }

 private:
  std::unique_ptr<engine::Engine> engine_;
  std::vector<double>& host_s_;
  std::int64_t began_ns_ = 0;
};

}  // namespace foreshard::gpu_bench
