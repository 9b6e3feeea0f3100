#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/dtype.hpp"
#include "sim/runtimes/gpu.hpp"
#include "sim/runtimes/live_bytes.hpp"

namespace foreshard::sim::torch {

struct Node;

/// Where the gradients of a parameter meet: they are summed, and the sum is added to `gradient` in place.
struct Leaf {
  Storage gradient;
  Storage arrived;                    ///< sum of those that came in this backward
  std::size_t awaited = 0;            ///< uses of the parameter whose gradient has not come yet
  std::function<void()> accumulated;  ///< a hook behind the last of them
};

/// Where a tensor's gradient goes: an output of the node that made it, or a leaf, or nowhere.
struct Edge {
  std::shared_ptr<Node> node;
  std::size_t output = 0;
  std::shared_ptr<Leaf> leaf;
  bool wants_gradient() const { return node || leaf; }
};

/// A tensor of the eager run: its memory, its extent, and where its gradient goes. Views share the memory.
struct Tensor {
  Storage storage;
  std::int64_t elements = 0;
  DType type = DType::f32;
  Edge edge;
  std::int64_t bytes() const { return elements * size_bytes(type); }
};

using Gradients = std::vector<Storage>;

/// A differentiable operator that ran, as in PyTorch's graph. `backward` owns what the operator saved; both die
/// together as soon as it has run, before its results reach the next nodes.
struct Node {
  std::uint64_t sequence = 0;
  std::vector<Edge> next;                  ///< one for each result of `backward`
  Gradients arrived;                       ///< by output
  std::vector<std::function<void()>> pre;  ///< hooks before `backward`
  std::function<Gradients(const Gradients&)> backward;
};

/// The engine of automatic differentiation: nodes that have their gradient run in the reverse order of their creation.
/// (PyTorch's engine on one device: the highest sequence number that is ready; with one root every user of the node
/// that comes next has then run.)
class Autograd {
 public:
  /// `in_place`: whether a second gradient is added to the first where nothing else refers to it.
  Autograd(LiveBytes& live, bool in_place, Gpu& gpu) : live_(live), gpu_(gpu), in_place_(in_place) {}

  std::shared_ptr<Node> record(std::vector<Edge> next, std::function<Gradients(const Gradients&)> backward);
  /// Backward from a tensor of one element, then `at_end`, before the caller's gradient of the root dies.
  void run(const Tensor& root, const std::function<void()>& at_end);

 private:
  void send(const Edge& edge, Storage gradient);
  void send(Leaf& leaf, Storage gradient);
  void add(Storage& sum, Storage gradient);

  LiveBytes& live_;
  Gpu& gpu_;
  bool in_place_;
  std::uint64_t recorded_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Node>> ready_;
};

}  // namespace foreshard::sim::torch
