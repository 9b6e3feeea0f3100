#pragma once
#include <functional>

#include "sim/runtimes/wrapper.hpp"

namespace foreshard::sim::torch {

/// Calls `hook` before the backward of whatever made each of a unit's outputs.
void before_backward_of(const Wrapper::Tensors& outputs, const std::function<void()>& hook);

/// The inputs behind one node, whose backward is the end of the unit's: `hook` is called there. Those without a
/// gradient are let through; if none has one, `hook` is never called.
Wrapper::Tensors through_end_of_backward(Eager& eager, Wrapper::Tensors inputs, const std::function<void()>& hook);

}  // namespace foreshard::sim::torch
