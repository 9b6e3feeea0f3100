#pragma once
#include <span>
#include <string>
#include <vector>

#include "sim/network/nccl_tests.hpp"

namespace foreshard::sim::network {

/// A measured collective and what is known of its run.
struct MeasuredCollective {
  model::OpKind kind{};
  Version nccl;
  Group group;
  double bytes = 0, us = 0;
};

struct FittedFabric {
  Fabric fabric;
  double error_before_pct = 0, error_after_pct = 0;  ///< median of |predicted / measured - 1| over all points
};

/// What the fabric between these groups' ranks adds to NCCL's own estimate: floor, coefficient of √bytes by collective
/// and efficiency, none negative and the last at most 1, by least squares of relative errors. A collective without
/// points keeps the coefficient that `cluster` has. All groups are inside a node, or all leave it.
FittedFabric fit_fabric(const Cluster& cluster, std::span<const MeasuredCollective> points, const std::string& name,
                        const std::string& source);

/// A file of sim/machines/fabrics' form, as `read_fabric` takes it.
std::string to_json(const Fabric& fabric);

/// The x of least |rows·x - 1|² with no negative part; a row is a point divided by what was measured. Exact for few
/// unknowns: tries every set of those that are not zero.
std::vector<double> non_negative_least_squares(const std::vector<std::vector<double>>& rows,
                                               const std::vector<double>& targets);

}  // namespace foreshard::sim::network
