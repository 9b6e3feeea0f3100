#include "sim/cost/kernel_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "sim/cost/gpu_memory.hpp"
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

/// Those for which `fits` holds, or all if it holds for none.
template <class Fits>
std::vector<const KernelTable*> preferred(const std::vector<const KernelTable*>& tables, const Fits& fits) {
  std::vector<const KernelTable*> fitting;
  std::copy_if(tables.begin(), tables.end(), std::back_inserter(fitting), fits);
  return fitting.empty() ? tables : fitting;
}

/// Of the kind; of its type where there is one, else of f32.
std::vector<const KernelTable*> tables_of(const Machine& machine, OpKind kind, bool accumulate, DType dtype) {
  std::vector<const KernelTable*> tables;
  for (const KernelTable& table : machine.kernels)
    if (table.kind == kind) tables.push_back(&table);
  const bool known = std::any_of(tables.begin(), tables.end(), [=](const KernelTable* t) { return t->dtype == dtype; });
  tables = preferred(tables, [=](const KernelTable* t) { return t->dtype == (known ? dtype : DType::f32); });
  return preferred(tables, [=](const KernelTable* t) { return t->accumulate == accumulate; });
}

/// A kernel that moves and computes about as much, for kinds that no machine has tables of.
OpKind stand_in(OpKind kind) {
  switch (kind) {
    case OpKind::opaque:
    case OpKind::opaque_backward:
      return OpKind::linear;
    case OpKind::full_attention:
    case OpKind::reattention:
      return OpKind::attention;
    case OpKind::full_attention_backward:
    case OpKind::reattention_backward:
      return OpKind::attention_backward;
    case OpKind::gelu_exact:
    case OpKind::relu:
      return OpKind::gelu;
    case OpKind::gelu_exact_backward:
    case OpKind::relu_backward:
      return OpKind::gelu_backward;
    case OpKind::geglu:
      return OpKind::swiglu;
    case OpKind::geglu_backward:
      return OpKind::swiglu_backward;
    case OpKind::scale:
    case OpKind::load_images:
    case OpKind::first_token:
    case OpKind::first_token_backward:
    case OpKind::relative_bias:
    case OpKind::dequantise:
      return OpKind::cast;
    case OpKind::image_tokens:
    case OpKind::image_tokens_backward:
    case OpKind::relative_bias_backward:
      return OpKind::add;
    default:
      return kind;
  }
}

bool has_table(const Machine& machine, OpKind kind) {
  return std::ranges::any_of(machine.kernels, [&](const KernelTable& table) { return table.kind == kind; });
}

bool has_table(const Machine& machine, OpKind kind, DType dtype) {
  return std::ranges::any_of(machine.kernels,
                             [&](const KernelTable& table) { return table.kind == kind && table.dtype == dtype; });
}

/// Of which a machine may know no more than what others take, in proportion to the bytes they move: of adamw and of
/// parameters in f32.
bool is_unknown_update(const Machine& machine, OpKind kind, DType dtype) {
  if (!model::is_update(kind)) return false;
  return dtype == DType::bf16 ? !has_table(machine, kind, dtype) : kind != OpKind::adamw && !has_table(machine, kind);
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
                      std::string* source, DType dtype) {
  if (is_unknown_update(machine, kind, dtype)) {
    const OpKind known = has_table(machine, kind) ? kind : OpKind::adamw;
    const double part = update_bytes(1, model::moment_count(kind), dtype == DType::bf16 ? dtype : DType::f32) /
                        update_bytes(1, model::moment_count(known));
    return std::max(machine.kernel_floor_s.value,
                    part * kernel_seconds(machine, known, accumulate, sizes, busy_cores, source));
  }
  const OpKind like = has_table(machine, kind) ? kind : stand_in(kind);
  const auto tables = tables_of(machine, like, accumulate, dtype);
  FORESHARD_EXPECT(!tables.empty(), "a machine has a table for every kernel");
  const auto [below, above] = around(tables, busy_cores);
  const Shape shape = shape_of(kind, sizes, accumulate);
  if (source) *source = like == kind ? below->source : fmt::format("as {}: {}", model::name_of(like), below->source);
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
