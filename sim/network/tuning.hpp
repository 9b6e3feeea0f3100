#pragma once
#include <array>
#include <compare>

namespace foreshard::sim::network {

/// A release of NCCL.
struct Version {
  int major = 2, minor = 28, patch = 3;
  auto operator<=>(const Version&) const = default;
};

enum class Algorithm { ring, tree, nvls, nvls_tree, pat };
enum class Protocol { ll, ll128, simple };
inline constexpr std::array algorithms{Algorithm::ring, Algorithm::tree, Algorithm::nvls, Algorithm::nvls_tree,
                                       Algorithm::pat};
inline constexpr std::array protocols{Protocol::ll, Protocol::ll128, Protocol::simple};

/// Rows of NCCL's tables, by the smallest compute capability; columns are 1, 2 and 3 or more nodes.
enum class Generation { volta, ampere, hopper, blackwell };
Generation generation_of(int compute_capability);

using PerProtocol = std::array<double, 3>;
using PerAlgorithm = std::array<PerProtocol, 5>;
using Caps = std::array<std::array<double, 3>, 4>;

/// The constants of NCCL's time model: microseconds, GB/s (1e9 bytes/s).
/// Source: NVIDIA/nccl@5067397c src/graph/tuning.cc, and the tags v2.10.3, v2.18.3, v2.21.5, v2.23.4, v2.27.3 for what
/// earlier releases had instead.
struct Tuning {
  PerAlgorithm base_us, nvlink_us, pcie_us, network_us;
  Caps ll_max, ring_ll128, tree_ll128, tree, nvls_tree;
  std::array<double, 4> nvls_efficiency;
  double ring_ll = 0.5;          ///< of the bus bandwidth
  bool nvls_by_table = true;     ///< NVLS by efficiency and caps (2.28.3 and later); else by 5/6 of the slower way
  bool nvls = true, pat = true;  ///< whether the release has them
  double ampere_bus_max = 1e9;   ///< all channels together
};
Tuning tuning_of(const Version& version);

/// Factor on the bandwidth of tree all-reduces, by protocol and size in bytes.
double tree_correction(Protocol protocol, double bytes);

}  // namespace foreshard::sim::network
