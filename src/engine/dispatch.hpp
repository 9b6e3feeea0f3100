#pragma once
#include "engine/arena.hpp"
#include "engine/kernel_calls.hpp"
#include "engine/loss_fault.hpp"
#include "engine/step_sums.hpp"
#include "exec/step_context.hpp"
#include "kernels/backend.hpp"
#include "plan/plan.hpp"

namespace foreshard::engine {

/// Runs the compute ops of one rank's plan: finds each op's bytes in the arenas and calls the kernel of its kind.
class Dispatch {
 public:
  Dispatch(const plan::Plan& plan, int rank, Arenas& arenas, kernels::Backend& kernels)
      : plan_(plan), rank_(rank), arenas_(arenas), kernels_(kernels) {}

  /// Blocking, on the calling thread and its OpenMP team. `op` is not a collective.
  void run(const plan::Op& op, const exec::StepContext& context, int micro_batch);

  void begin_step() { loss_fault_ = {}; }
  const LossFault& loss_fault() const { return loss_fault_; }

  void* bytes(const plan::Operand& operand);  ///< null for an absent operand

 private:
  kernels::Const in(const plan::Op& op, std::size_t index);
  kernels::Mut out(const plan::Op& op, std::size_t index);
  KernelCall call_of(const plan::Op& op);
  void embedding_backward(const plan::Op& op);
  void dropout(const plan::Op& op, const exec::StepContext& context, int micro_batch);
  void load_batch(const plan::Op& op, const exec::StepContext& context, int micro_batch);
  void load_images(const plan::Op& op, const exec::StepContext& context, int micro_batch);
  void zero_fill(const plan::Op& op);
  void cast_shard(const plan::Op& op);
  void retain(const plan::Op& op);
  void copy(const plan::Op& op);
  void grad_norm(const plan::Op& op);
  void update(const plan::Op& op, const exec::StepContext& context);
  void update_piece(const plan::Op& op, const kernels::Update& update, std::int64_t first);
  StepSums sums(const plan::Op& op, const exec::StepContext& context);
  void cross_entropy(const plan::Op& op, int micro_batch);
  void cross_entropy_backward(const plan::Op& op, const exec::StepContext& context);
  std::int64_t first_row_not_finite(const plan::Op& op);

  const plan::Plan& plan_;
  int rank_;
  Arenas& arenas_;
  kernels::Backend& kernels_;
  LossFault loss_fault_;  // of the current step
};

}  // namespace foreshard::engine
