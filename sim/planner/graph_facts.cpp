#include "sim/planner/graph_facts.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.hpp"

namespace foreshard::sim::planner {
namespace {

using model::Graph;
using model::Operator;
using model::OpKind;
using model::Role;
using model::Sizes;
using model::TensorId;

double bytes_of(const model::Tensor& tensor) {
  return static_cast<double>(tensor.elements) * static_cast<double>(size_bytes(tensor.dtype));
}

/// Whether a tensor holds more in a graph of two sequences, twice as much then.
bool grows(const model::Tensor& one, const model::Tensor& two) { return two.elements == 2 * one.elements; }

/// Bytes of activations alive at each operator. Those that do not grow with the sequences count as nothing.
class LiveActivations {
 public:
  LiveActivations(const Graph& graph, const Graph& two) : graph_(graph), two_(two), lives_(graph.tensors.size()) {
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      for (const TensorId id : graph.operators[i].inputs) touch(id, i);
      for (const TensorId id : graph.operators[i].outputs) touch(id, i);
    }
  }

  std::vector<double> by_operator() const {
    std::vector<double> change(graph_.operators.size() + 1);
    for (std::size_t tensor = 0; tensor < lives_.size(); ++tensor)
      if (lives_[tensor].used) {
        const double bytes = bytes_of(graph_.tensors[tensor]);
        change[lives_[tensor].first] += bytes;
        change[lives_[tensor].last + 1] -= bytes;
      }
    for (std::size_t i = 1; i < change.size(); ++i) change[i] += change[i - 1];
    return change;
  }

 private:
  struct Life {
    std::size_t first = 0, last = 0;
    bool used = false;
  };

  /// The tensor whose memory this one lies in.
  TensorId storage(TensorId id) const {
    while (graph_[id].shares.valid()) id = graph_[id].shares;
    return id;
  }

  void touch(TensorId id, std::size_t at) {
    if (!id.valid() || id == graph_.loss) return;
    const model::Tensor& tensor = graph_[id];
    const bool temporary = tensor.role == Role::activation || tensor.role == Role::activation_grad;
    if (!temporary || !grows(tensor, two_[id])) return;
    Life& life = lives_[storage(id).value];
    if (!life.used) life.first = at;
    life.last = at;
    life.used = true;
  }

  const Graph &graph_, &two_;
  std::vector<Life> lives_;  // by tensor
};

/// Fills visits and units, operator by operator.
class Walk {
 public:
  Walk(const Graph& graph, const Graph& two)
      : graph_(graph), live_(LiveActivations(graph, two).by_operator()), last_number_(graph.units.size(), -1) {
    facts_.units.resize(graph.units.size());
    facts_.seq = graph.seq;
  }

  GraphFacts run() {
    int next = 0;
    for (const plan::Visit& visit : plan::visits_of(graph_)) {
      add(visit, next);
      if (visit.number >= 0) next = visit.number + 1, facts_.numbered.push_back(current());
    }
    index_reads();
    return std::move(facts_);
  }

 private:
  int current() const { return static_cast<int>(facts_.visits.size()) - 1; }

  void index_reads() {
    facts_.first_read.resize(facts_.visits.size());
    facts_.last_read.resize(facts_.visits.size());
    for (std::uint32_t unit = 0; unit < facts_.units.size(); ++unit) {
      if (facts_.units[unit].read_first < 0) continue;
      facts_.first_read[static_cast<std::size_t>(facts_.units[unit].read_first)].push_back(unit);
      facts_.last_read[static_cast<std::size_t>(facts_.units[unit].read_last)].push_back(unit);
    }
  }

  void add(const plan::Visit& visit, int next) {
    facts_.visits.push_back({.unit = visit.unit.value,
                             .backward = visit.phase == plan::Phase::backward,
                             .number = visit.number,
                             .next_number = next,
                             .previous = last_number_[visit.unit.value],
                             .opens = visit.opens_unit,
                             .closes = visit.closes_unit});
    UnitFacts& unit = facts_.units[visit.unit.value];
    ++(visit.phase == plan::Phase::backward ? unit.backward_visits : unit.forward_visits);
    if (visit.number >= 0) last_number_[visit.unit.value] = visit.number;
    for (std::size_t i = visit.first; i < visit.first + visit.count; ++i) note(graph_.operators[i]);
    measure(visit);
  }

  void note(const Operator& op) {
    for (const TensorId id : op.inputs)
      if (id.valid() && graph_[id].role == Role::parameter) extend(unit_of(id).read_first, unit_of(id).read_last);
    for (const TensorId id : op.outputs)
      if (id.valid() && graph_[id].role == Role::parameter_grad)
        extend(unit_of(id).gradient_first, unit_of(id).gradient_last);
  }

  UnitFacts& unit_of(TensorId id) { return facts_.units[graph_.parameters[graph_[id].parameter.value].unit.value]; }

  void extend(int& first, int& last) const {
    if (first < 0) first = current();
    last = current();
  }

  bool reads(const Operator& op, model::UnitId unit) const { return touches(op.inputs, Role::parameter, unit); }
  bool writes_gradient(const Operator& op, model::UnitId unit) const {
    return touches(op.outputs, Role::parameter_grad, unit);
  }
  bool touches(const std::vector<TensorId>& ids, Role role, model::UnitId unit) const {
    return std::ranges::any_of(ids, [&](TensorId id) {
      return id.valid() && graph_[id].role == role && graph_.parameters[graph_[id].parameter.value].unit == unit;
    });
  }

  void measure(const plan::Visit& visit) {
    const std::size_t end = visit.first + visit.count;
    std::size_t last_read = visit.first, first_gradient = end;
    bool any_read = false;
    for (std::size_t i = visit.first; i < end; ++i) {
      if (reads(graph_.operators[i], visit.unit)) last_read = i, any_read = true;
      if (first_gradient == end && writes_gradient(graph_.operators[i], visit.unit)) first_gradient = i;
    }
    for (std::size_t i = visit.first; i < end; ++i) {
      double& most = facts_.visits.back().live_bytes[any_read && i <= last_read][i >= first_gradient];
      most = std::max(most, live_[i]);
    }
  }

  const Graph& graph_;
  std::vector<double> live_;
  std::vector<int> last_number_;
  GraphFacts facts_;
};

/// The type that `sim::type_of` finds of a plan's op.
DType type_of(const Graph& graph, const Operator& op) {
  for (const auto* ids : {&op.inputs, &op.outputs})
    for (const TensorId id : *ids)
      if (id.valid() && graph[id].dtype != DType::i32 && graph[id].dtype != DType::i64) return graph[id].dtype;
  return graph.dtype;
}

/// Adds an operand's bytes to those that grow or to those that do not. Of tables no more than one sequence's rows.
void add_bytes(const Graph& graph, const Graph& two, const Operator& op, TensorId id, double& growing, double& fixed) {
  if (!id.valid()) return;
  const model::Tensor& tensor = graph[id];
  const bool parameter = tensor.role == Role::parameter || tensor.role == Role::parameter_grad;
  const bool table = parameter && (op.kind == OpKind::embedding || op.kind == OpKind::embedding_backward);
  const double rows =
      static_cast<double>(op.sizes.rows * op.sizes.cols) * static_cast<double>(size_bytes(tensor.dtype));
  if (!parameter && grows(tensor, two[id]))
    growing += bytes_of(tensor);
  else
    fixed += table ? std::min(bytes_of(tensor), rows) : bytes_of(tensor);
}

Sizes difference(const Sizes& two, const Sizes& one) {
  return {two.rows - one.rows,   two.cols - one.cols, two.inner - one.inner,
          two.batch - one.batch, two.seq - one.seq,   two.heads - one.heads};
}

OpFacts op_facts(const Graph& graph, const Graph& two, std::size_t i) {
  const Operator& op = graph.operators[i];
  OpFacts facts{.more = difference(two.operators[i].sizes, op.sizes), .dtype = type_of(graph, op), .count = 1};
  facts.op.kind = op.kind;
  facts.op.phase = op.phase;
  facts.op.sizes = op.sizes;
  for (const TensorId id : op.inputs) add_bytes(graph, two, op, id, facts.read_bytes, facts.fixed_read_bytes);
  for (const TensorId id : op.outputs) add_bytes(graph, two, op, id, facts.written_bytes, facts.fixed_written_bytes);
  return facts;
}

std::vector<OpFacts> distinct_ops(const Graph& graph, const Graph& two) {
  using Key = std::tuple<OpKind, DType, std::array<std::int64_t, 6>, double, double>;
  std::map<Key, OpFacts> distinct;
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const Operator& op = graph.operators[i];
    const OpFacts facts = op_facts(graph, two, i);
    const Sizes& s = op.sizes;
    const Key key{op.kind,
                  facts.dtype,
                  {s.rows, s.cols, s.inner, s.batch, s.seq, s.heads},
                  facts.read_bytes + facts.fixed_read_bytes,
                  facts.written_bytes + facts.fixed_written_bytes};
    const auto [entry, is_new] = distinct.try_emplace(key, facts);
    if (!is_new) ++entry->second.count;
  }
  std::vector<OpFacts> ops;
  for (auto& entry : distinct) ops.push_back(entry.second);
  return ops;
}

}  // namespace

GraphFacts facts_of(const Graph& one, const Graph& two) {
  FORESHARD_EXPECT(one.batch == 1 && two.batch == 2, "facts are of one sequence, and what a second one adds");
  FORESHARD_EXPECT(one.operators.size() == two.operators.size() && one.tensors.size() == two.tensors.size(),
                   "a second sequence adds no operators");
  GraphFacts facts = Walk(one, two).run();
  facts.ops = distinct_ops(one, two);
  return facts;
}

}  // namespace foreshard::sim::planner
