#pragma once
#include <cstdint>
#include <vector>

namespace foreshard::plan {

/// Which ranks take part in a collective, by axes of the mesh.
enum class GroupKind : std::uint8_t { none, shard, replica, world, inner };

/// World ranks as a box of replicas × outer × inner, inner fastest. A shard group is outer × inner, F = its size. Where
/// outer > 1, a unit is resharded to its inner group after forward.
struct Mesh {
  int replicas = 1, outer = 1, inner = 1;

  int world_size() const { return replicas * outer * inner; }
  int shard_degree() const { return outer * inner; }
  /// Ranks of one group.
  int members(GroupKind group) const;
  /// Position of `rank` in its shard group: which shard of each unit it owns.
  int shard_index(int rank) const { return rank % shard_degree(); }
  /// Position of `rank` in its inner group: which part of a unit it retains after forward.
  int inner_index(int rank) const { return rank % inner; }
  /// Ranks that hold the other shards of `rank`'s replica, in order of shard index.
  std::vector<int> shard_group(int rank) const;
  /// Ranks that retain the other parts of a unit after forward, in order of inner index.
  std::vector<int> inner_group(int rank) const;
  /// Ranks that hold the same shard as `rank`, in order of replica.
  std::vector<int> replica_group(int rank) const;
};

}  // namespace foreshard::plan
