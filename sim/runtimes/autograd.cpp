#include "sim/runtimes/autograd.hpp"

#include <utility>

namespace foreshard::sim::torch {

std::shared_ptr<Node> Autograd::record(std::vector<Edge> next, std::function<Gradients(const Gradients&)> backward) {
  auto node = std::make_shared<Node>();
  node->sequence = ++recorded_;
  node->next = std::move(next);
  node->backward = std::move(backward);
  return node;
}

void Autograd::add(Storage& sum, Storage gradient) {
  if (!sum)
    sum = std::move(gradient);
  else if (!in_place_ || !sum.may_be_added_to())
    sum = Storage(live_, sum.bytes());
}

void Autograd::send(const Edge& edge, Storage gradient) {
  if (edge.leaf) {
    add(edge.leaf->gradient, std::move(gradient));
    if (edge.leaf->accumulated) edge.leaf->accumulated();
    return;
  }
  Gradients& arrived = edge.node->arrived;
  if (arrived.size() <= edge.output) arrived.resize(edge.output + 1);
  add(arrived[edge.output], std::move(gradient));
  ready_.emplace(edge.node->sequence, edge.node);
}

void Autograd::run(const Tensor& root, const std::function<void()>& at_end) {
  const Storage seed(live_, size_bytes(root.type));
  send(root.edge, seed);
  while (!ready_.empty()) {
    const std::shared_ptr<Node> node = std::move(ready_.rbegin()->second);
    ready_.erase(std::prev(ready_.end()));
    for (const auto& hook : node->pre) hook();
    Gradients results = node->backward(node->arrived);
    node->arrived.clear();
    node->backward = nullptr;
    for (std::size_t i = 0; i < results.size(); ++i)
      if (results[i] && node->next[i].wants_gradient()) send(node->next[i], std::move(results[i]));
    node->next.clear();
  }
  at_end();
}

}  // namespace foreshard::sim::torch
