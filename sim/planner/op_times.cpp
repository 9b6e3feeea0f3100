#include "sim/planner/op_times.hpp"

#include <algorithm>

namespace foreshard::sim::planner {
namespace {

constexpr DType types[] = {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32};

plan::Plan plan_on(const plan::Mesh& mesh) {
  plan::Plan plan;
  plan.mesh = mesh;
  plan.buffers = {{.space = plan::Space::device}, {.space = plan::Space::host}};
  plan.host_arena_bytes = 1;
  for (const DType type : types) plan.operands.push_back({.buffer = {0}, .dtype = type});
  plan.operands.push_back({.buffer = {1}, .dtype = DType::f32});
  return plan;
}

std::uint32_t operand_of(DType dtype) {
  return static_cast<std::uint32_t>(std::ranges::find(types, dtype) - std::begin(types));
}

}  // namespace

OpTimes::OpTimes(const Cluster& cluster, const plan::Mesh& mesh)
    : plan_(plan_on(mesh)), cost_(plan_, cluster, cost::gpu_profile(), 1) {}

double OpTimes::of(plan::Op op, DType dtype) {
  op.first_operand = operand_of(dtype);
  op.input_count = 1;
  return 1e-9 * static_cast<double>(cost_(op).duration_ns);
}

double OpTimes::in_host(plan::Op op) {
  op.first_operand = static_cast<std::uint32_t>(std::size(types));
  op.input_count = 1;
  return 1e-9 * static_cast<double>(cost_(op).duration_ns);
}

double OpTimes::collective(plan::OpKind kind, plan::GroupKind group, std::int64_t elements, DType dtype) {
  if (plan_.mesh.members(group) == 1 || elements == 0) return 0;
  plan::Op op{.kind = kind};
  op.group = group;
  op.sizes.rows = elements;
  return of(op, dtype);
}

}  // namespace foreshard::sim::planner
