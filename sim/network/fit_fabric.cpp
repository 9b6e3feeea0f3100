#include "sim/network/fit_fabric.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_text.hpp"

namespace foreshard::sim::network {
namespace {

using model::OpKind;
constexpr std::array kinds{OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_reduce};

std::size_t index_of(OpKind kind) { return std::size_t(std::ranges::find(kinds, kind) - kinds.begin()); }

bool leaves_node(const Cluster& cluster, const MeasuredCollective& point) {
  return layout_of(cluster, point.group).nodes > 1;
}

/// The cluster with a fabric that adds nothing, both inside nodes and across.
Cluster bare(Cluster cluster, double efficiency) {
  Fabric nothing;
  nothing.efficiency.value = efficiency;
  cluster.intra = cluster.fabric = nothing;
  return cluster;
}

double predicted_us(const Cluster& cluster, const MeasuredCollective& point) {
  return collective_time(cluster, point.nccl, point.kind, point.bytes, point.group).seconds * 1e6;
}

double median_error_pct(const Cluster& cluster, std::span<const MeasuredCollective> points) {
  std::vector<double> errors;
  for (const MeasuredCollective& point : points)
    errors.push_back(100 * std::abs(predicted_us(cluster, point) / point.us - 1));
  std::ranges::nth_element(errors, errors.begin() + std::ptrdiff_t(errors.size() / 2));
  return errors[errors.size() / 2];
}

/// Solves the normal equations of the chosen columns by elimination. Empty where they are dependent.
std::vector<double> least_squares(const std::vector<std::vector<double>>& rows, const std::vector<double>& targets,
                                  const std::vector<std::size_t>& columns) {
  const std::size_t n = columns.size();
  std::vector<std::vector<double>> a(n, std::vector<double>(n + 1));
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) a[i][j] += rows[r][columns[i]] * rows[r][columns[j]];
      a[i][n] += rows[r][columns[i]] * targets[r];
    }
  for (std::size_t i = 0; i < n; ++i) {
    if (!(a[i][i] > 0)) return {};
    for (std::size_t k = i + 1; k < n; ++k) {
      const double factor = a[k][i] / a[i][i];
      for (std::size_t j = i; j <= n; ++j) a[k][j] -= factor * a[i][j];
      if (a[k][k] <= 1e-12 * std::abs(factor)) a[k][k] = 0;
    }
  }
  std::vector<double> x(n);
  for (std::size_t i = n; i-- > 0;) {
    x[i] = a[i][n];
    for (std::size_t j = i + 1; j < n; ++j) x[i] -= a[i][j] * x[j];
    x[i] /= a[i][i];
  }
  return x;
}

double squares(const std::vector<std::vector<double>>& rows, const std::vector<double>& targets,
               const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    double residual = -targets[r];
    for (std::size_t i = 0; i < x.size(); ++i) residual += rows[r][i] * x[i];
    sum += residual * residual;
  }
  return sum;
}

/// Unknowns: floor, three coefficients of √bytes, and the part by which transfers take longer than NCCL thinks.
std::vector<double> unknowns(const Cluster& cluster, std::span<const MeasuredCollective> points) {
  const Cluster full = bare(cluster, 1), half = bare(cluster, 0.5);
  std::vector<std::vector<double>> rows;
  std::vector<double> targets;
  for (const MeasuredCollective& point : points) {
    const double nccl = predicted_us(full, point), transfer = predicted_us(half, point) - nccl;
    std::vector<double> row(5);
    row[0] = 1 / point.us;
    row[1 + index_of(point.kind)] = std::sqrt(point.bytes) / point.us;
    row[4] = transfer / point.us;
    rows.push_back(row);
    targets.push_back(1 - nccl / point.us);
  }
  return non_negative_least_squares(rows, targets);
}

}  // namespace

std::vector<double> non_negative_least_squares(const std::vector<std::vector<double>>& rows,
                                               const std::vector<double>& targets) {
  const std::size_t count = rows.at(0).size();
  std::vector<double> best(count, 0.0);
  double least = squares(rows, targets, best);
  for (unsigned set = 1; set < 1U << count; ++set) {
    std::vector<std::size_t> columns;
    for (std::size_t i = 0; i < count; ++i)
      if ((set >> i & 1) != 0) columns.push_back(i);
    const auto some = least_squares(rows, targets, columns);
    if (some.empty() || std::ranges::any_of(some, [](double x) { return !(x >= 0); })) continue;
    std::vector<double> x(count, 0.0);
    for (std::size_t i = 0; i < columns.size(); ++i) x[columns[i]] = some[i];
    if (const double sum = squares(rows, targets, x); sum < least) least = sum, best = x;
  }
  return best;
}

FittedFabric fit_fabric(const Cluster& cluster, std::span<const MeasuredCollective> points, const std::string& name,
                        const std::string& source) {
  FORESHARD_EXPECT(!points.empty(), "a fabric is fitted to measurements");
  const bool across = leaves_node(cluster, points[0]);
  FORESHARD_EXPECT(std::ranges::all_of(points, [&](const auto& p) { return leaves_node(cluster, p) == across; }),
                   "one fabric at a time");
  const std::vector<double> x = unknowns(cluster, points);
  Fabric fabric = across ? cluster.fabric : cluster.intra;
  fabric.name = name;
  fabric.floor_s = {x[0] * 1e-6, source};
  Quantity* coefficients[] = {&fabric.all_gather_s_per_sqrt_byte, &fabric.reduce_scatter_s_per_sqrt_byte,
                              &fabric.all_reduce_s_per_sqrt_byte};
  for (const OpKind kind : kinds)
    if (std::ranges::any_of(points, [&](const auto& point) { return point.kind == kind; }))
      *coefficients[index_of(kind)] = {x[1 + index_of(kind)] * 1e-6, source};
  fabric.efficiency = {1 / (1 + x[4]), source};
  Cluster fitted = cluster;
  (across ? fitted.fabric : fitted.intra) = fabric;
  return {fabric, median_error_pct(cluster, points), median_error_pct(fitted, points)};
}

std::string to_json(const Fabric& fabric) {
  const auto quantity = [](const Quantity& q) {
    return nlohmann::ordered_json{{"value", q.value}, {"source", q.source}};
  };
  const nlohmann::ordered_json json{{"schema", 1},
                                    {"name", fabric.name},
                                    {"floor_s", quantity(fabric.floor_s)},
                                    {"all_gather_s_per_sqrt_byte", quantity(fabric.all_gather_s_per_sqrt_byte)},
                                    {"reduce_scatter_s_per_sqrt_byte", quantity(fabric.reduce_scatter_s_per_sqrt_byte)},
                                    {"all_reduce_s_per_sqrt_byte", quantity(fabric.all_reduce_s_per_sqrt_byte)},
                                    {"efficiency", quantity(fabric.efficiency)}};
  return json_text(json, 1) + "\n";
}

}  // namespace foreshard::sim::network
