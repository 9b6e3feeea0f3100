#include "sim/closed_form/rings.hpp"

#include <algorithm>

namespace foreshard::sim::closed_form {

/// Of `members`, `on_node` of which share a node: bandwidth of the slowest link, a latency a hop.
Traffic Rings::ring(double bytes, int members, int on_node) const {
  if (members <= 1) return {};
  const bool across = members > on_node;
  // A ring enters and leaves each node once, over all its network adapters.
  const double rate = across ? std::min(gpu_.node_link_bytes, gpu_.network_bytes * on_node) : gpu_.node_link_bytes;
  const int between = across ? members / on_node : 0;
  const double latency = (members - 1 - between) * gpu_.link_latency_s + between * gpu_.network_latency_s;
  const double sent = bytes * (members - 1) / members / e_.network;
  return {latency + sent / rate, sent / rate};
}

Traffic Rings::sharded(double bytes) const {
  return ring(bytes, s_.shard_degree, std::min(s_.shard_degree, s_.gpus_per_node));
}

Traffic Rings::replicated(double bytes) const {
  const int replicas = s_.gpus / s_.shard_degree;
  return ring(bytes, replicas, std::clamp(s_.gpus_per_node / s_.shard_degree, 1, replicas)) * 2;
}

Traffic Rings::gathering() const { return sharded(block_parameters(s_) * s_.gathered_bytes); }

Traffic Rings::reduction() const {
  const double bytes = block_parameters(s_) * s_.trained * s_.reduced_bytes;
  const Traffic shards = sharded(bytes) * (s_.shards_gradients ? 1 : 2);
  return s_.gpus > s_.shard_degree ? shards + replicated(bytes / s_.shard_degree) : shards;
}

}  // namespace foreshard::sim::closed_form
