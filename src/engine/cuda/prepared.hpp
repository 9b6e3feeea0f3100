#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/cuda/fused_products.hpp"
#include "engine/cuda/graph.hpp"
#include "engine/cuda/memory.hpp"
#include "engine/kernel_choices.hpp"
#include "kernels/cuda/backend.hpp"
#include "plan/plan.hpp"

namespace foreshard::engine::cuda {

/// What follows from one plan alone: made before its first step and kept.
class Prepared {
 public:
  Prepared(const plan::Plan& plan, int rank, const KernelChoices& choices);

  const plan::Plan& plan() const { return plan_; }

  const plan::Segment& segment_of(const plan::Op& op) const { return plan_.segments[segments_[index_of(op)]]; }
  bool ends_segment(const plan::Op& op) const;
  /// An op of another lane may wait for it.
  bool awaited(const plan::Op& op) const { return awaited_[index_of(op)]; }
  /// The last of its lane that belongs to its unit in a row: there progress is marked.
  bool ends_visit(const plan::Op& op) const { return ends_visit_[index_of(op)]; }
  /// "linear u3", as in the trace.
  const std::string& name(const plan::Op& op) const { return names_[index_of(op)]; }
  /// The pair of which this is the first op, if it is carried out as one: only such pairs are that were chosen.
  const FusedPair* fused(const plan::Op& op) const { return fused_[index_of(op)]; }
  /// The second op of such a pair: it is done when the first is.
  bool is_done_before(const plan::Op& op) const { return done_before_[index_of(op)]; }
  /// Of an update: its parameters' parts of this rank's shard, in device memory.
  std::span<const kernels::cuda::Part> parts(const plan::Op& op) const;

  /// Of a whole step, in order.
  const std::vector<Graph>& graphs() const { return graphs_; }
  const Graph& add_graph(Graph graph) { return graphs_.emplace_back(std::move(graph)); }
  bool is_captured() const { return captured_; }
  void set_captured() { captured_ = true; }
  /// Drops graphs that were captured with other addresses than those of this generation.
  void keep_graphs_of(std::int64_t generation);

 private:
  std::size_t index_of(const plan::Op& op) const { return static_cast<std::size_t>(&op - plan_.ops.data()); }
  void find_awaited();
  void find_visits();
  void choose_fused(const KernelChoices& choices);
  void upload_parts(int rank);

  const plan::Plan& plan_;
  std::vector<std::string> names_;                        // by op
  std::vector<std::size_t> segments_;                     // by op
  std::vector<bool> awaited_, ends_visit_, done_before_;  // by op
  std::vector<FusedPair> pairs_;
  std::vector<const FusedPair*> fused_;  // by op
  struct Range {
    std::size_t first = 0, count = 0;
  };
  std::vector<Range> part_ranges_;  // by op
  DeviceMemory parts_;
  std::vector<Graph> graphs_;
  bool captured_ = false;  // all of them
  std::int64_t generation_ = 0;
};

}  // namespace foreshard::engine::cuda
