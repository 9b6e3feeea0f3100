#include "sim/network/nccl_model.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace foreshard::sim::network {
namespace {

using model::OpKind;

std::size_t index(auto value) { return static_cast<std::size_t>(value); }

/// What all formulas below read; names as in NCCL's: n ranks, N nodes, ppn ranks per node.
class Model {
 public:
  Model(const Cluster& cluster, const Tuning& tuning, OpKind kind, double bytes, const Layout& layout)
      : cluster_(cluster),
        tuning_(tuning),
        layout_(layout),
        bytes_(bytes),
        sum_(kind == OpKind::all_reduce),
        n_(layout.ranks),
        steps_(sum_ ? 2 * (n_ - 1) : n_ - 1),
        generation_(generation_of(cluster.device.compute_capability())),
        ring_(ring_graph(cluster, layout)),
        tree_(tree_graph(cluster, layout)),
        nvls_(nvls_graph(cluster, layout)) {}

  Estimate estimate(Algorithm algorithm, Protocol protocol) const {
    if (!available(algorithm, protocol)) return {algorithm, protocol};
    const double bus = bus_bandwidth(algorithm, protocol);
    return {algorithm, protocol, latency(algorithm, protocol), bus * to_algorithm(algorithm), bus};
  }

 private:
  bool nvidia() const { return cluster_.device.compute_capability() > 0; }
  bool nvlink() const { return cluster_.device.nvlinks > 0; }
  bool one_node() const { return layout_.nodes == 1; }

  bool available(Algorithm algorithm, Protocol protocol) const {
    const bool simple = protocol == Protocol::simple;
    if (protocol == Protocol::ll128 && (!nvidia() || (!nvlink() && layout_.ranks_per_node > 1))) return false;
    switch (algorithm) {
      case Algorithm::ring:
        return true;
      case Algorithm::tree:
        return sum_;
      case Algorithm::nvls:
        return simple && tuning_.nvls && nvls_.channels >= 2 && one_node();
      case Algorithm::nvls_tree:
        return simple && sum_ && tuning_.nvls && nvls_.channels >= 2 && !one_node();
      case Algorithm::pat:
        return simple && !sum_ && tuning_.pat && nvidia() && layout_.ranks_per_node == 1 && !one_node();
    }
    return false;
  }

  double cap(const Caps& caps) const { return caps[index(generation_)][column()]; }
  std::size_t column() const { return index(std::min(layout_.nodes, 3) - 1); }
  double ll_max() const {
    if (one_node()) return cap(tuning_.ll_max);
    return tuning_.ll_max[cluster_.cpu == "amd" ? 1 : 0][column()];
  }

  double ring_bus() const {
    const double bus = ring_.channels * (layout_.nodes <= 2 ? ring_.intra : ring_.inter);
    return generation_ == Generation::ampere ? std::min(bus, tuning_.ampere_bus_max) : bus;
  }

  double bus_bandwidth(Algorithm algorithm, Protocol protocol) const {
    switch (algorithm) {
      case Algorithm::ring:
        return ring_bandwidth(protocol);
      case Algorithm::tree:
        return tree_bandwidth(protocol) * tree_correction(protocol, bytes_);
      case Algorithm::pat:
        return 0.75 * ring_bus();
      default:
        return nvls_.channels * (tuning_.nvls_by_table ? nvls_channel(algorithm) : early_nvls_channel(algorithm));
    }
  }

  double ring_bandwidth(Protocol protocol) const {
    if (protocol == Protocol::simple) return ring_bus();
    if (protocol == Protocol::ll) return std::min(ll_max(), tuning_.ring_ll * ring_bus());
    return std::min(0.92 * ring_bus(), ring_.channels * cap(tuning_.ring_ll128));
  }

  double tree_bus() const { return tree_.channels * (layout_.nodes <= 2 ? tree_.intra : tree_.inter); }

  double tree_bandwidth(Protocol protocol) const {
    const double bus = std::min(0.92 * tree_bus(), ring_.channels * cap(tuning_.tree));
    if (protocol == Protocol::simple) return bus;
    if (protocol == Protocol::ll) return std::min(bus / 3.8, ll_max());
    return std::min(bus * (one_node() ? 7.0 / 9 : 120.0 / 128), ring_.channels * cap(tuning_.tree_ll128));
  }

  double part_from_others() const { return double(layout_.ranks_per_node - 1) / layout_.ranks_per_node; }

  double nvls_channel(Algorithm algorithm) const {
    const double heads = double(nvls_.channels - 1) / nvls_.channels;
    const double intra =
        nvls_.intra * tuning_.nvls_efficiency[index(generation_)] * heads * (sum_ ? 2 : part_from_others());
    const bool tree = algorithm == Algorithm::nvls_tree;
    const double way = std::min(intra, nvls_.inter * (tree && layout_.nodes <= 2 ? 2 : 1));
    return tree ? std::min(way, cap(tuning_.nvls_tree)) : way;
  }

  double early_nvls_channel(Algorithm algorithm) const {
    if (!sum_) return std::min(nvls_.intra * part_from_others(), 0.9 * nvls_.inter);
    const bool far = algorithm == Algorithm::nvls_tree && layout_.nodes > 2;
    return std::min(nvls_.intra, nvls_.inter / (far ? 2 : 1));
  }

  double to_algorithm(Algorithm algorithm) const {
    if (algorithm == Algorithm::ring) return double(n_) / steps_;
    if (algorithm == Algorithm::tree) return 0.5;
    if (!sum_) return 1;
    return tuning_.nvls_by_table ? double(n_) / steps_ : 5.0 / 6;
  }

  double on_node(Algorithm algorithm, Protocol protocol) const {
    const double wire = (nvlink() ? tuning_.nvlink_us : tuning_.pcie_us)[index(algorithm)][index(protocol)];
    const double posting = (cluster_.cpu == "amd" ? 2.0 : 1.0) * (protocol == Protocol::simple ? 3 : 1);
    return one_node() ? wire : std::max(wire, posting);
  }

  double across(Algorithm algorithm, Protocol protocol) const {
    return tuning_.network_us[index(algorithm)][index(protocol)];
  }

  double ring_latency(Protocol protocol) const {
    const int far = one_node() ? 0 : (sum_ ? 2 : 1) * (layout_.nodes - 1);
    const auto net = layout_.ranks_per_node == 1 ? Algorithm::tree : Algorithm::ring;
    const double sum = tuning_.base_us[0][index(protocol)] + (steps_ - far) * on_node(Algorithm::ring, protocol) +
                       far * across(net, protocol);
    const bool slow = protocol == Protocol::simple && sum_ && !one_node() && bytes_ / (ring_.channels * n_) >= 64;
    return !slow ? sum : sum * (generation_ == Generation::volta ? 1.9 : 1.4);
  }

  double latency(Algorithm algorithm, Protocol protocol) const {
    const double base = tuning_.base_us[index(algorithm)][index(protocol)], near = on_node(algorithm, protocol),
                 net = across(algorithm, protocol), levels = std::floor(std::log2(layout_.nodes));
    switch (algorithm) {
      case Algorithm::ring:
        return ring_latency(protocol);
      case Algorithm::tree:
        return base + 2 * ((layout_.ranks_per_node - 1) * near + levels * net);
      case Algorithm::nvls:
        return near;
      case Algorithm::nvls_tree:
        return base + near + 2 * levels * net;
      case Algorithm::pat:
        return base + levels * net / 3.5 + 2.8 * n_;
    }
    return 0;
  }

  const Cluster& cluster_;
  const Tuning& tuning_;
  Layout layout_;
  double bytes_;
  bool sum_;
  int n_, steps_;
  Generation generation_;
  Graph ring_, tree_, nvls_;
};

bool is_collective(OpKind kind) {
  return kind == OpKind::all_gather || kind == OpKind::reduce_scatter || kind == OpKind::all_reduce;
}

}  // namespace

Estimate estimate(const Cluster& cluster, const Tuning& tuning, OpKind kind, double bytes, const Layout& layout,
                  Algorithm algorithm, Protocol protocol) {
  FORESHARD_EXPECT(is_collective(kind) && layout.ranks >= 2, "NCCL's model is of collectives among two or more ranks");
  return Model(cluster, tuning, kind, bytes, layout).estimate(algorithm, protocol);
}

Estimate choose(const Cluster& cluster, const Tuning& tuning, OpKind kind, double bytes, const Layout& layout) {
  FORESHARD_EXPECT(is_collective(kind) && layout.ranks >= 2, "NCCL's model is of collectives among two or more ranks");
  const Model model(cluster, tuning, kind, bytes, layout);
  Estimate best;
  for (const Algorithm algorithm : algorithms)
    for (const Protocol protocol : protocols) {
      const Estimate other = model.estimate(algorithm, protocol);
      if (other.bandwidth > 0 && (best.bandwidth == 0 || other.microseconds(bytes) < best.microseconds(bytes)))
        best = other;
    }
  return best;
}

}  // namespace foreshard::sim::network
