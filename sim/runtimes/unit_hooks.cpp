#include "sim/runtimes/unit_hooks.hpp"

namespace foreshard::sim::torch {

void before_backward_of(const Wrapper::Tensors& outputs, const std::function<void()>& hook) {
  for (const Tensor& y : outputs)
    if (y.edge.node) y.edge.node->pre.push_back(hook);
}

Wrapper::Tensors through_end_of_backward(Eager& eager, Wrapper::Tensors inputs, const std::function<void()>& hook) {
  auto node = eager.autograd().record({}, [hook](const Gradients& g) { return hook(), g; });
  for (Tensor& x : inputs)
    if (x.edge.wants_gradient()) {
      node->next.push_back(x.edge);
      x.edge = {node, node->next.size() - 1, nullptr};
    }
  return inputs;
}

}  // namespace foreshard::sim::torch
