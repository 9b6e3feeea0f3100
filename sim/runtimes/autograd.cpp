#include "sim/runtimes/autograd.hpp"

#include <set>
#include <utility>

namespace foreshard::sim::torch {
namespace {

/// Counts at each leaf the edges that lead to it from the graph behind `root`.
void count_uses(const Tensor& root) {
  std::vector<const Node*> open{root.edge.node.get()};
  std::set<const Node*> seen{open.front()};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Edge& edge : node->next) {
      if (edge.leaf) ++edge.leaf->awaited;
      if (edge.node && seen.insert(edge.node.get()).second) open.push_back(edge.node.get());
    }
  }
}

}  // namespace

std::shared_ptr<Node> Autograd::record(std::vector<Edge> next, std::function<Gradients(const Gradients&)> backward) {
  auto node = std::make_shared<Node>();
  node->sequence = ++recorded_;
  node->next = std::move(next);
  node->backward = std::move(backward);
  return node;
}

void Autograd::add(Storage& sum, Storage gradient) {
  if (!sum) {
    sum = std::move(gradient);
    return;
  }
  gpu_.moves(3 * sum.bytes(), model::OpKind::add);
  if (!in_place_ || !sum.may_be_added_to()) sum = Storage(live_, sum.bytes());
}

void Autograd::send(const Edge& edge, Storage gradient) {
  if (edge.leaf) return send(*edge.leaf, std::move(gradient));
  Gradients& arrived = edge.node->arrived;
  if (arrived.size() <= edge.output) arrived.resize(edge.output + 1);
  add(arrived[edge.output], std::move(gradient));
  ready_.emplace(edge.node->sequence, edge.node);
}

void Autograd::send(Leaf& leaf, Storage gradient) {
  add(leaf.arrived, std::move(gradient));
  if (--leaf.awaited > 0) return;
  const Storage sum = std::exchange(leaf.arrived, {});
  if (leaf.gradient) gpu_.moves(3 * sum.bytes(), model::OpKind::add);
  if (!leaf.gradient) leaf.gradient = sum;
  if (leaf.accumulated) leaf.accumulated();
}

void Autograd::run(const Tensor& root, const std::function<void()>& at_end) {
  count_uses(root);
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
