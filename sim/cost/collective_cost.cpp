#include "sim/cost/collective_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace foreshard::sim::cost {
namespace {

double distance(int a, int b) { return std::abs(std::log(double(a) / b)); }

/// The table of the nearest rank count. One rank moves nothing, so it stands only for itself, unless it is all there
/// is.
const CollectiveTable& nearest(const Machine& machine, OpKind kind, int ranks) {
  const CollectiveTable* best = nullptr;
  const auto penalty = [&](const CollectiveTable& table) {
    return distance(table.ranks, ranks) + ((table.ranks == 1) != (ranks == 1) ? 1e3 : 0);
  };
  for (const CollectiveTable& table : machine.collectives)
    if (table.kind == kind && (!best || penalty(table) < penalty(*best))) best = &table;
  FORESHARD_EXPECT(best, "a machine has a table for every collective");
  return *best;
}

/// Bytes that all ranks move, in units of one rank's whole buffer, divided by the cores that move them.
double load(const Machine& machine, int ranks) {
  const double moved = ranks > 1 ? double(ranks - 1) / ranks : 1;
  return moved * std::max(1.0, double(ranks) / machine.cores);
}

double on_node_seconds(const Machine& machine, OpKind kind, double bytes, int ranks, std::string* source) {
  const CollectiveTable& table = nearest(machine, kind, ranks);
  const double seconds = table_seconds(table.points, bytes);
  if (source) *source = table.source;
  if (table.ranks == ranks) return seconds;
  if (source) *source = fmt::format("extrapolated from {} ranks: {}", table.ranks, table.source);
  const double latency = table.points.front().seconds;
  return latency * ranks / table.ranks + (seconds - latency) * load(machine, ranks) / load(machine, table.ranks);
}

double network_seconds(const Machine& machine, OpKind kind, double bytes, const Members& members) {
  const int nodes = (members.ranks + members.on_node - 1) / members.on_node;
  const double latency = std::ceil(std::log2(nodes)) * machine.network_latency_s.value;
  const double into_node = bytes * members.part_from_elsewhere() * (members.on_node + members.in_equal_groups);
  return passes(kind) * (latency + into_node / machine.network_bytes_per_s.value);
}

}  // namespace

double table_seconds(const std::vector<CollectivePoint>& points, double bytes) {
  if (bytes <= points.front().bytes) return points.front().seconds;
  if (bytes >= points.back().bytes) return points.back().seconds * bytes / points.back().bytes;
  const auto above = std::upper_bound(points.begin(), points.end(), bytes,
                                      [](double size, const CollectivePoint& point) { return size < point.bytes; });
  const CollectivePoint &high = *above, &low = *(above - 1);
  const double part = std::log(bytes / low.bytes) / std::log(high.bytes / low.bytes);
  return low.seconds * std::pow(high.seconds / low.seconds, part);
}

OpKind measured_kind(OpKind kind) {
  if (kind == OpKind::gather_norm) return OpKind::all_gather;
  const bool sums = kind == OpKind::sum_norm || kind == OpKind::sum_loss;
  return sums ? OpKind::all_reduce : kind;
}

double passes(OpKind kind) { return measured_kind(kind) == OpKind::all_reduce ? 2 : 1; }

CollectiveTime collective_time(const Machine& machine, OpKind kind, double bytes, const Members& members,
                               std::string* source) {
  CollectiveTime time{.on_node_s = on_node_seconds(machine, measured_kind(kind), bytes, members.on_node, source)};
  if (members.ranks == members.on_node) return time;
  time.network_s = network_seconds(machine, kind, bytes, members);
  if (source) *source += "; network " + machine.network_bytes_per_s.source;
  return time;
}

double collective_seconds(const Machine& machine, OpKind kind, double bytes, const Members& members,
                          std::string* source) {
  const CollectiveTime time = collective_time(machine, kind, bytes, members, source);
  return std::max(time.on_node_s + time.network_s, machine.kernel_floor_s.value);
}

}  // namespace foreshard::sim::cost
