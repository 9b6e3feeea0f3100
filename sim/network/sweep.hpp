#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/network/collective.hpp"

namespace foreshard::sim::network {

/// A collective of one size, as nccl-tests reports it. Bandwidths in bytes per second; source of both:
/// NVIDIA/nccl-tests doc/PERFORMANCE.md.
struct SweepRow {
  double bytes = 0;  ///< of the whole (unsharded) buffer, nccl-tests' "size"
  CollectiveCost cost;
  double algorithm_bandwidth = 0;  ///< bytes / time
  double bus_bandwidth = 0;        ///< times (n − 1) / n, or 2·(n − 1) / n of an all-reduce
};

/// `kind` over `sizes`, when nothing else runs. The group has at least two ranks.
std::vector<SweepRow> sweep(const Cluster& cluster, model::OpKind kind, const Group& group,
                            std::span<const double> sizes);

/// Bytes from "4K,1.5M,2GB" or, doubled from the first to at most the second, "8M:4G". Throws InputError (usage).
std::vector<double> parse_sizes(std::string_view text);

/// For people: a table with nccl-tests' columns. For programs: an array of objects, units in the keys.
std::string sweep_text(std::span<const SweepRow> rows);
nlohmann::ordered_json sweep_json(std::span<const SweepRow> rows);

}  // namespace foreshard::sim::network
