#include "sim/cost/measured_kernel.hpp"

#include <algorithm>

#include "sim/cost/interpolate.hpp"
#include "sim/cost/shape.hpp"

namespace foreshard::sim::cost {
namespace {

constexpr double beyond = 2;  ///< the range of a table's work that ratios are trusted in, over the range measured

const KernelTable* table_of(const Machine& machine, const KernelCall& call) {
  const KernelTable* found = nullptr;
  for (const KernelTable& table : machine.kernels)
    if (table.kind == call.kind && table.dtype == call.dtype && (!found || table.accumulate == call.accumulate))
      found = &table;
  return found;
}

bool in_range(const KernelTable& table, double work) {
  return std::ranges::any_of(table.points,
                             [&](const KernelPoint& point) {
                               return shape_of(table.kind, point.sizes, table.accumulate).work <= beyond * work;
                             }) &&
         std::ranges::any_of(table.points, [&](const KernelPoint& point) {
           return shape_of(table.kind, point.sizes, table.accumulate).work >= work / beyond;
         });
}

}  // namespace

std::optional<double> measured_seconds(const Machine& machine, const KernelCall& call,
                                       const std::function<double(const Sizes&)>& formula, std::string* source) {
  const KernelTable* table = table_of(machine, call);
  const Shape shape = shape_of(call.kind, call.sizes, call.accumulate);
  if (!table || !(shape.work > 0) || !in_range(*table, shape.work)) return std::nullopt;
  std::vector<Known> ratios;
  for (const KernelPoint& point : table->points)
    if (const Shape known = shape_of(call.kind, point.sizes, table->accumulate); known.work > 0)
      ratios.push_back({known.extents, point.seconds / formula(point.sizes)});
  if (source) *source = table->source;
  return formula(call.sizes) * interpolate(ratios, shape.extents);
}

const CollectiveTable* measured_collective(const Machine& machine, OpKind kind, int ranks, int nodes) {
  const auto found = std::ranges::find_if(machine.collectives, [&](const CollectiveTable& table) {
    return table.kind == kind && table.ranks == ranks && table.nodes == nodes;
  });
  return found == machine.collectives.end() ? nullptr : &*found;
}

}  // namespace foreshard::sim::cost
