#include "plan/mesh.hpp"

namespace foreshard::plan {

std::vector<int> Mesh::shard_group(int rank) const {
  const int first = rank - shard_index(rank);
  std::vector<int> ranks;
  for (int i = 0; i < shard_degree(); ++i) ranks.push_back(first + i);
  return ranks;
}

std::vector<int> Mesh::replica_group(int rank) const {
  std::vector<int> ranks;
  for (int replica = 0; replica < replicas; ++replica) ranks.push_back(replica * shard_degree() + shard_index(rank));
  return ranks;
}

}  // namespace foreshard::plan
