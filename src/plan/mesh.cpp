#include "plan/mesh.hpp"

#include <cstddef>
#include <numeric>

namespace foreshard::plan {

namespace {

std::vector<int> neighbours(int first, int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

}  // namespace

int Mesh::members(GroupKind group) const {
  switch (group) {
    case GroupKind::shard:
      return shard_degree();
    case GroupKind::replica:
      return replicas;
    case GroupKind::world:
      return world_size();
    case GroupKind::inner:
      return inner;
    case GroupKind::none:
      break;
  }
  return 1;
}

std::vector<int> Mesh::shard_group(int rank) const { return neighbours(rank - shard_index(rank), shard_degree()); }

std::vector<int> Mesh::inner_group(int rank) const { return neighbours(rank - inner_index(rank), inner); }

std::vector<int> Mesh::replica_group(int rank) const {
  std::vector<int> ranks;
  for (int replica = 0; replica < replicas; ++replica) ranks.push_back(replica * shard_degree() + shard_index(rank));
  return ranks;
}

}  // namespace foreshard::plan
