#pragma once
#include "engine/cuda/prepared.hpp"
#include "engine/cuda/step_memory.hpp"
#include "engine/dispatch.hpp"
#include "kernels/cuda/backend.hpp"

namespace foreshard::engine::cuda {

/// Queues the compute and copy ops of one rank's plan on the stream of `kernels`.
class Compute {
 public:
  Compute(const plan::Plan& plan, const Prepared& prepared, int rank, Arenas& arenas, const StepMemory& step,
          kernels::cuda::Kernels& kernels)
      : plan_(plan),
        prepared_(prepared),
        rank_(rank),
        step_(step),
        kernels_(kernels),
        dispatch_(plan, rank, arenas, kernels) {}

  void run(const plan::Op& op);
  std::byte* bytes(const plan::Operand& operand) { return static_cast<std::byte*>(dispatch_.bytes(operand)); }

 private:
  kernels::Const in(const plan::Op& op, std::size_t index);
  kernels::Mut out(const plan::Op& op, std::size_t index);
  kernels::Const read(const plan::Operand& operand) { return {dispatch_.bytes(operand), operand.dtype}; }
  void fused_product(const FusedPair& pair);
  kernels::Rows rows(const plan::Op& op) const { return {.rows = op.sizes.rows, .cols = op.sizes.cols}; }
  void load(const plan::Op& op, std::size_t index, kernels::Const staged);
  void dropout(const plan::Op& op);
  void zero_fill(const plan::Op& op);
  void copy(const plan::Op& op);
  void retain(const plan::Op& op);
  void update(const plan::Op& op);

  const plan::Plan& plan_;
  const Prepared& prepared_;
  int rank_;
  const StepMemory& step_;
  kernels::cuda::Kernels& kernels_;
  Dispatch dispatch_;
};

}  // namespace foreshard::engine::cuda
