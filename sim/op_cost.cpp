#include "sim/op_cost.hpp"

#include <algorithm>
#include <span>

#include "sim/cost/kernel_cost.hpp"
#include "sim/virtual_time.hpp"

namespace foreshard::sim {

cost::Members members_of(const plan::Mesh& mesh, plan::GroupKind group, int ranks_per_node) {
  const int members = mesh.members(group);
  const int neighbours = group == plan::GroupKind::replica ? ranks_per_node / mesh.shard_degree() : ranks_per_node;
  const int on_node = std::clamp(neighbours, 1, members);
  return {members, on_node, ranks_per_node - on_node};
}

DType type_of(const plan::Plan& plan, const plan::Op& op) {
  const std::uint32_t skipped = model::is_update(op.kind) && op.output_count > 0 ? op.input_count : 0;
  const auto operands =
      std::span(plan.operands).subspan(op.first_operand, op.input_count + op.output_count).subspan(skipped);
  const auto found = std::ranges::find_if(operands, [](const plan::Operand& operand) {
    return operand.present() && operand.dtype != DType::i32 && operand.dtype != DType::i64;
  });
  return found == operands.end() ? plan.dtype : found->dtype;
}

std::size_t hash_of(const Sizes& s, std::uint64_t rest) {
  std::uint64_t state = rest;
  for (const std::int64_t size : {s.rows, s.cols, s.inner, s.batch, s.seq, s.heads})
    state = (state ^ static_cast<std::uint64_t>(size)) * 0x9E3779B97F4A7C15ULL, state ^= state >> 32;
  return state;
}

std::size_t OpCost::KeyHash::operator()(const Key& key) const {
  return hash_of(key.sizes, static_cast<std::uint64_t>(key.kind) * 256 + static_cast<std::uint64_t>(key.dtype) * 16 +
                                static_cast<std::uint64_t>(key.group) * 2 + key.accumulate);
}

OpCost::OpCost(const plan::Plan& plan, const Machine& machine, const Layout& layout)
    : plan_(plan), machine_(machine), layout_(layout) {}

Demand OpCost::operator()(const plan::Op& op) {
  const Key key{op.kind, op.group, op.accumulate, type_of(plan_, op), op.sizes};
  const auto found = known_.find(key);
  return found != known_.end() ? found->second : known_.emplace(key, estimate(op)).first->second;
}

double OpCost::cores_per_rank() const { return double(machine_.cores) / layout_.ranks_per_node; }

Demand OpCost::estimate(const plan::Op& op) { return op.group == plan::GroupKind::none ? kernel(op) : collective(op); }

Demand OpCost::kernel(const plan::Op& op) {
  const int busy_cores = std::min(machine_.cores, layout_.ranks_per_node);
  std::string source;
  const double seconds =
      cost::kernel_seconds(machine_, op.kind, op.accumulate, op.sizes, busy_cores, &source, type_of(plan_, op));
  sources_.insert(std::move(source));
  const int threads = op.lane == plan::Lane::compute ? layout_.threads : 1;
  return {op_nanoseconds(seconds / cost::team_speed(machine_, threads)), threads};
}

Demand OpCost::collective(const plan::Op& op) {
  const auto members = members_of(plan_.mesh, op.group, layout_.ranks_per_node);
  const auto bytes = static_cast<double>(plan::payload_bytes(plan_, op));
  std::string source;
  const cost::CollectiveTime time = cost::collective_time(machine_, op.kind, bytes, members, &source);
  sources_.insert(std::move(source));
  const double received = cost::passes(op.kind) * bytes * members.part_from_elsewhere();
  const double busy_s = time.on_node_s * std::min(1.0, cores_per_rank());
  const double seconds = std::max(busy_s + time.network_s, machine_.kernel_floor_s.value);
  const double core_s = busy_s + received * machine_.network_core_s_per_byte.value;
  const double beside_s = busy_s + time.network_s / machine_.network_beside_compute.value;
  return {.duration_ns = op_nanoseconds(seconds),
          .core = time.network_s > 0 ? std::min(1.0, core_s / seconds) : 1.0,
          .link = std::min(1.0, time.network_s / seconds),
          .beside_compute = std::min(1.0, seconds / beside_s)};
}

}  // namespace foreshard::sim
