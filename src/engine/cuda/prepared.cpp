#include "engine/cuda/prepared.hpp"

#include <array>
#include <utility>

#include "engine/cuda/product_algorithms.hpp"
#include "kernels/cuda/check.hpp"

namespace foreshard::engine::cuda {

using kernels::cuda::Part;
using plan::Op;
using plan::Wait;

Prepared::Prepared(const plan::Plan& plan, int rank, const KernelChoices& choices)
    : plan_(plan),
      segments_(plan.ops.size()),
      awaited_(plan.ops.size()),
      ends_visit_(plan.ops.size()),
      done_before_(plan.ops.size()),
      pairs_(fused_pairs(plan)),
      fused_(plan.ops.size()),
      part_ranges_(plan.ops.size()) {
  for (std::size_t i = 0; i < plan.segments.size(); ++i)
    for (const Op& op : plan.ops_of(plan.segments[i])) segments_[index_of(op)] = i;
  for (const Op& op : plan.ops) names_.push_back(plan::name_of(plan, op));
  find_awaited();
  find_visits();
  choose_fused(choices);
  upload_parts(rank);
}

void Prepared::keep_graphs_of(std::int64_t generation) {
  if (std::exchange(generation_, generation) == generation) return;
  graphs_.clear();
  captured_ = false;
}

bool Prepared::ends_segment(const Op& op) const {
  const plan::Segment& segment = segment_of(op);
  return index_of(op) + 1 == segment.first_op + segment.op_count;
}

/// Boundary points are waited for by the segment behind.
void Prepared::find_awaited() {
  for (const Op& op : plan_.ops)
    for (const Wait& wait : plan_.waits_of(op))
      if (wait.on == Wait::On::op && plan_.ops[wait.index].lane != op.lane) awaited_[wait.index] = true;
  for (const plan::Segment& segment : plan_.segments)
    for (const auto& points : segment.points)
      for (const plan::OpId point : points)
        if (point.valid()) awaited_[point.value] = true;
}

void Prepared::find_visits() {
  for (const plan::Segment& segment : plan_.segments) {
    std::array<const Op*, plan::lane_count> last{};
    for (const Op& op : plan_.ops_of(segment)) {
      const Op*& before = last[static_cast<std::size_t>(op.lane)];
      if (before && before->unit != op.unit) ends_visit_[index_of(*before)] = true;
      before = &op;
    }
    for (const Op* op : last)
      if (op) ends_visit_[index_of(*op)] = true;
  }
}

void Prepared::choose_fused(const KernelChoices& choices) {
  for (const FusedPair& pair : pairs_) {
    if (!choices.contains(name_of(pair.product))) continue;
    fused_[index_of(*pair.op)] = &pair;
    done_before_[index_of(*pair.next)] = true;
  }
}

void Prepared::upload_parts(int rank) {
  std::vector<Part> all;
  for (const Op& op : plan_.ops) {
    if (!is_update(op.kind)) continue;
    const std::size_t first = all.size();
    for (const plan::ShardPart& part : plan::parts_of_shard(plan_.units[op.unit.value], rank))
      if (part.piece->updated())
        all.push_back({part.at, part.count, static_cast<std::int32_t>(part.piece->parameter.value), part.first});
    part_ranges_[index_of(op)] = {first, all.size() - first};
  }
  const auto bytes = std::as_bytes(std::span(all));
  parts_ = DeviceMemory(static_cast<std::int64_t>(bytes.size()));
  if (!bytes.empty())
    kernels::cuda::check(cudaMemcpy(parts_.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
}

std::span<const Part> Prepared::parts(const Op& op) const {
  const Range range = part_ranges_[index_of(op)];
  return {as<Part>(parts_) + range.first, range.count};
}

}  // namespace foreshard::engine::cuda
