#include "sim/cost/kernel_cost.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "sim/cost/interpolate.hpp"
#include "sim/cost/shape.hpp"

namespace foreshard::sim::cost {
namespace {

/// Work per second at the shape, from one table.
double rate(const KernelTable& table, const Shape& shape) {
  std::vector<Known> known;
  known.reserve(table.points.size());
  for (const KernelPoint& point : table.points) {
    const Shape measured = shape_of(table.kind, point.sizes, table.accumulate);
    if (measured.work > 0) known.push_back({measured.extents, measured.work / point.seconds});
  }
  return interpolate(known, shape.extents);
}

std::vector<const KernelTable*> tables_of(const Machine& machine, OpKind kind, bool accumulate) {
  std::vector<const KernelTable*> same, other;
  for (const KernelTable& table : machine.kernels)
    if (table.kind == kind) (table.accumulate == accumulate ? same : other).push_back(&table);
  return same.empty() ? other : same;
}

/// The tables measured with the nearest numbers of busy cores, at most and at least `busy_cores`; equal at the ends.
std::pair<const KernelTable*, const KernelTable*> around(const std::vector<const KernelTable*>& tables,
                                                         int busy_cores) {
  const KernelTable *below = nullptr, *above = nullptr;
  for (const KernelTable* table : tables) {
    if (table->busy_cores <= busy_cores && (!below || table->busy_cores > below->busy_cores)) below = table;
    if (table->busy_cores >= busy_cores && (!above || table->busy_cores < above->busy_cores)) above = table;
  }
  return {below ? below : above, above ? above : below};
}

}  // namespace

double kernel_seconds(const Machine& machine, OpKind kind, bool accumulate, const Sizes& sizes, int busy_cores,
                      std::string* source) {
  const auto tables = tables_of(machine, kind, accumulate);
  FORESHARD_EXPECT(!tables.empty(), "a machine has a table for every kernel");
  const auto [below, above] = around(tables, busy_cores);
  const Shape shape = shape_of(kind, sizes, accumulate);
  if (source) *source = below->source;
  double seconds = shape.work / rate(*below, shape);
  if (below != above) {
    const double part = double(busy_cores - below->busy_cores) / (above->busy_cores - below->busy_cores);
    seconds += part * (shape.work / rate(*above, shape) - seconds);
  }
  return std::max(seconds, machine.kernel_floor_s.value);
}

double team_speed(const Machine& machine, int threads) {
  if (threads <= 1 || machine.cores <= 1) return 1;
  const double all = machine.cores * machine.team_efficiency.value;
  return 1 + (threads - 1) * (all - 1) / (machine.cores - 1);
}

}  // namespace foreshard::sim::cost
