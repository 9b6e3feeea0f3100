#pragma once
#include "sim/network/nccl_model.hpp"

namespace foreshard::sim::network {

/// A collective on GPUs, as NCCL would carry it out.
struct CollectiveCost {
  double seconds = 0;
  Algorithm algorithm{};
  Protocol protocol{};
  int channels = 0;  ///< thread blocks, each about one multiprocessor, for as long as it runs
};

/// Time from the last member's arrival to the last member's return when nothing else runs, except the other groups of
/// `group`. `bytes` are those of the whole (unsharded) buffer.
///
/// The choice that this release of NCCL makes, and the time by the constants of the newest, which rest on more
/// measurements. Its bandwidth reduced to the fabric's efficiency and to this group's share of the node's
/// adapters (NCCL chooses without knowing the others), plus the fabric's floor and square-root term (see Fabric): the
/// one of the network where the group leaves the link domain, else the one inside the node. One rank: nothing.
CollectiveCost collective_time(const Cluster& cluster, const Version& version, model::OpKind kind, double bytes,
                               const Group& group);

}  // namespace foreshard::sim::network
