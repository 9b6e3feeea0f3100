#include "plan/leave_out.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/glob.hpp"
#include "plan/module_path.hpp"

namespace foreshard::plan {
namespace {

using model::Graph;
using model::Operator;
using model::Role;
using model::TensorId;

bool matches_any(const std::vector<std::string>& globs, std::string_view name) {
  return std::ranges::any_of(globs, [&](const std::string& glob) { return matches_glob(glob, name); });
}

/// The outermost block around `path`, itself included, that is left out; empty: none.
std::string_view left_out_around(std::string_view path, const LeftOut& what) {
  std::string_view found;
  for (; !path.empty(); path = parent_of(path))
    if (class_of(path) == "block" && matches_any(what.blocks, path)) found = path;
  return found;
}

/// Takes blocks out of a graph, the stream of activations going past them.
class Leaving {
 public:
  Leaving(const Graph& wrapped, const LeftOut& what) : graph_(wrapped), what_(what), from_(wrapped.tensors.size()) {}

  Graph run() {
    std::vector<Operator> kept;
    for (Operator& op : graph_.operators) {
      redirect(op);
      if (const std::string_view block = block_of(op); block.empty())
        kept.push_back(std::move(op));
      else
        pass_by(block, op);
    }
    graph_.operators = std::move(kept);
    mark_idle();
    return std::move(graph_);
  }

 private:
  std::string_view block_of(const Operator& op) const {
    return left_out_around(graph_.modules[op.module.value], what_);
  }

  void redirect(Operator& op) const {
    for (TensorId& input : op.inputs)
      if (input.valid() && from_[input.value].valid()) input = from_[input.value];
  }

  /// The first activation that a block reads is what its results stand for.
  void pass_by(std::string_view block, const Operator& op) {
    const auto entry =
        std::ranges::find_if(op.inputs, [&](TensorId id) { return id.valid() && graph_[id].role == Role::activation; });
    FORESHARD_EXPECT(entry != op.inputs.end(), "a block that is left out reads an activation first");
    const TensorId in = entry_.try_emplace(block, *entry).first->second;
    for (const TensorId output : op.outputs)
      if (graph_[output].elements == graph_[in].elements) from_[output.value] = in;
  }

  void mark_idle() {
    std::vector<bool> read(graph_.parameters.size());
    for (const Operator& op : graph_.operators)
      for (const TensorId id : op.inputs)
        if (id.valid() && graph_[id].role == Role::parameter) read[graph_[id].parameter.value] = true;
    for (std::size_t id = 0; id < read.size(); ++id)
      graph_.parameters[id].idle = !read[id] || matches_any(what_.frozen, graph_.parameters[id].name);
  }

  Graph graph_;
  const LeftOut& what_;
  std::vector<TensorId> from_;  // by tensor of a left-out block: what goes past it
  std::map<std::string_view, TensorId> entry_;
};

}  // namespace

Graph leave_out(const Graph& wrapped, const LeftOut& what) {
  return what == LeftOut{} ? wrapped : Leaving(wrapped, what).run();
}

}  // namespace foreshard::plan
