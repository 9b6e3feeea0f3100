#include "sim/planner/op_times.hpp"

#include <algorithm>

namespace foreshard::sim::planner {
namespace {

constexpr DType types[] = {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32};
constexpr plan::BufferId on_device{0}, in_host_memory{1};

plan::Plan plan_on(const plan::Mesh& mesh) {
  plan::Plan plan;
  plan.mesh = mesh;
  plan.buffers = {{.space = plan::Space::device}, {.space = plan::Space::host}};
  plan.host_arena_bytes = 1;
  for (const plan::BufferId buffer : {on_device, in_host_memory})
    for (const DType type : types) plan.operands.push_back({.buffer = buffer, .dtype = type});
  return plan;
}

std::uint32_t operand_of(plan::BufferId buffer, DType dtype) {
  const auto type = static_cast<std::size_t>(std::ranges::find(types, dtype) - std::begin(types));
  return static_cast<std::uint32_t>(buffer.value * std::size(types) + type);
}

}  // namespace

OpTimes::OpTimes(const Cluster& cluster, const plan::Mesh& mesh)
    : plan_(plan_on(mesh)), cost_(plan_, cluster, cost::gpu_profile(), 1) {}

double OpTimes::of(plan::Op op, DType dtype) {
  op.first_operand = operand_of(on_device, dtype);
  op.input_count = 1;
  return 1e-9 * static_cast<double>(cost_(op).duration_ns);
}

double OpTimes::in_host(plan::Op op, DType dtype) {
  op.first_operand = operand_of(in_host_memory, dtype);
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
