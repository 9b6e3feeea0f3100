#pragma once
#include <vector>

namespace foreshard::plan {

/// World ranks as a box of replicas × outer × inner, inner fastest. A shard group is outer × inner, F = its size.
struct Mesh {
  int replicas = 1, outer = 1, inner = 1;

  int world_size() const { return replicas * outer * inner; }
  int shard_degree() const { return outer * inner; }
  /// Position of `rank` in its shard group: which shard of each unit it owns.
  int shard_index(int rank) const { return rank % shard_degree(); }
  /// Ranks that hold the other shards of `rank`'s replica, in order of shard index.
  std::vector<int> shard_group(int rank) const;
  /// Ranks that hold the same shard as `rank`, in order of replica.
  std::vector<int> replica_group(int rank) const;
};

}  // namespace foreshard::plan
