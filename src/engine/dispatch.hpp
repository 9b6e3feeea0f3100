#pragma once
#include "engine/arena.hpp"
#include "exec/step_context.hpp"
#include "kernels/backend.hpp"
#include "plan/plan.hpp"

namespace foreshard::engine {

/// Runs the compute ops of one rank's plan: finds each op's bytes in the arena and calls the kernel of its kind.
class Dispatch {
 public:
  Dispatch(const plan::Plan& plan, int rank, Arena& arena, kernels::Backend& kernels)
      : plan_(plan), rank_(rank), arena_(arena), kernels_(kernels) {}

  /// Blocking, on the calling thread and its OpenMP team. `op` is not a collective.
  void run(const plan::Op& op, const exec::StepContext& context, int micro_batch);

  void* bytes(const plan::Operand& operand);  ///< null for an absent operand

 private:
  kernels::Const in(const plan::Op& op, std::size_t index);
  kernels::Mut out(const plan::Op& op, std::size_t index);
  void embedding_backward(const plan::Op& op);
  void dropout(const plan::Op& op, const exec::StepContext& context, int micro_batch);
  void load_batch(const plan::Op& op, const exec::StepContext& context, int micro_batch);
  void zero_fill(const plan::Op& op);
  void cast_shard(const plan::Op& op);
  void retain(const plan::Op& op);
  void grad_norm(const plan::Op& op);
  void update(const plan::Op& op, const exec::StepContext& context);
  void update_piece(const plan::Op& op, const kernels::Update& update, std::int64_t first);
  double gradient_scale(const plan::Op& op, const exec::StepContext& context);

  const plan::Plan& plan_;
  int rank_;
  Arena& arena_;
  kernels::Backend& kernels_;
};

}  // namespace foreshard::engine
