#pragma once
#include <array>

#include "kernels/backend.hpp"
#include "plan/op.hpp"

namespace foreshard::engine {

/// An op that only computes, with its operands as a kernel takes them: those that it lacks are absent.
struct KernelCall {
  static constexpr std::size_t most_operands = 8;

  kernels::Backend& kernels;
  const plan::Op& op;
  std::array<kernels::Const, most_operands> in;
  std::array<kernels::Mut, most_operands> out;
};

/// What an op of attention computes, or its backward. Scores with a bias are not scaled; a full one's scalar says
/// whether they are.
kernels::Attention attention_of(const plan::Op& op, bool biased);

using Kernel = void (*)(const KernelCall&);

/// Calls the kernel of a kind of op, blocking; null for kinds that do anything else, or depend on the step.
Kernel kernel_of(plan::OpKind kind);

}  // namespace foreshard::engine
