#include <algorithm>
#include <utility>

#include "plan/build.hpp"

namespace foreshard::plan {
namespace {

using model::Graph;
using model::Operator;
using model::TensorId;

/// Walks a differentiated graph. Where a backward operator reads what a dropped forward operator of its unit made, that
/// operator is repeated right before, with whatever dropped operators it needs itself.
class Recomputation {
 public:
  Recomputation(const Graph& graph, const Recompute& what)
      : graph_(graph),
        forward_(graph.operators),
        what_(what),
        producer_(graph.tensors.size()),
        again_(graph.tensors.size()) {}

  Graph run() {
    graph_.operators.clear();
    for (const Operator& op : forward_) {
      if (op.phase == Phase::forward) note_outputs(op);
      Operator copy = op;
      if (op.phase == Phase::backward) read_again(copy);
      graph_.operators.push_back(std::move(copy));
    }
    return std::move(graph_);
  }

 private:
  void note_outputs(const Operator& op) {
    if (!dropped(op)) return;
    for (const TensorId output : op.outputs) producer_[output.value] = &op;
  }

  bool dropped(const Operator& op) const {
    if (op.unit == model::root_unit || (op.unit.value - 1) % static_cast<std::uint32_t>(what_.every) != 0) return false;
    return what_.mode == Recompute::Mode::full || std::ranges::find(what_.kinds, op.kind) != what_.kinds.end();
  }

  /// Replaces inputs by their recomputed selves.
  void read_again(Operator& reader) {
    for (TensorId& input : reader.inputs)
      if (input.valid() && producer_[input.value] && producer_[input.value]->unit == reader.unit)
        input = recomputed(input);
  }

  TensorId recomputed(TensorId tensor) {
    if (!again_[tensor.value].valid()) repeat(*producer_[tensor.value]);
    return again_[tensor.value];
  }

  void repeat(const Operator& op) {
    Operator copy = op;
    copy.phase = Phase::backward;
    read_again(copy);
    for (TensorId& output : copy.outputs) output = again_[output.value] = graph_.add_tensor(graph_[output]);
    graph_.operators.push_back(std::move(copy));
  }

  Graph graph_;
  std::vector<Operator> forward_;
  const Recompute& what_;
  std::vector<const Operator*> producer_;  // by tensor: the dropped operator that makes it
  std::vector<TensorId> again_;            // by tensor: the same, recomputed
};

}  // namespace

Graph recompute(const Graph& graph, const Recompute& what) {
  return what.mode == Recompute::Mode::none ? graph : Recomputation(graph, what).run();
}

}  // namespace foreshard::plan
