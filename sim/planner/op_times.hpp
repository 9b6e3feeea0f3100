#pragma once
#include "sim/gpu_op_cost.hpp"

namespace foreshard::sim::planner {

/// Times of single ops on a mesh of a cluster's GPUs, each running alone on a rank that is not slow; in seconds.
class OpTimes {
 public:
  /// `cluster` must outlive this.
  OpTimes(const Cluster& cluster, const plan::Mesh& mesh);

  /// An op with its sizes and bytes, whose numbers have type `dtype`.
  double of(plan::Op op, DType dtype);

  /// An op on shards of type `dtype` that lie in host memory.
  double in_host(plan::Op op, DType dtype);

  /// A collective whose whole buffer has so many elements. Nothing where the group has one member.
  double collective(plan::OpKind kind, plan::GroupKind group, std::int64_t elements, DType dtype);

 private:
  plan::Plan plan_;  ///< no ops: a mesh, an operand of each type, and one in host memory
  GpuOpCost cost_;
};

}  // namespace foreshard::sim::planner
