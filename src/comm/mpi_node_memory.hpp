#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/abort_flag.hpp"
#include "comm/mapping.hpp"
#include "comm/mpi_host.hpp"

namespace foreshard::comm {

/// The arenas of the ranks of one node, mapped by all of them, and the flag by which one of them ends the run.
class MpiNodeMemory {
 public:
  /// Collective over `node`. Where this rank fails, `problem` says why, and the rest is not to be used. All ranks of
  /// the node must have come back from here before one lets go.
  MpiNodeMemory(const MpiHost& node, std::int64_t arena_bytes, const AbortFlag& abort);

  const std::string& problem() const { return problem_; }  ///< empty: all is well
  std::span<std::byte> arena() const { return own_.bytes().first(static_cast<std::size_t>(arena_bytes_)); }
  std::byte* arena_of(int node_rank) const { return node_rank == node_rank_ ? own_.data() : others_[node_rank].data(); }
  AbortFlag& abort_flag() const;

 private:
  void attach(std::span<const MappingName> names);

  std::int64_t arena_bytes_, segment_bytes_;
  int node_rank_;
  Mapping own_;                  ///< the arena, then a page for the flag (of node rank 0)
  std::vector<Mapping> others_;  ///< by node rank; the own one empty
  std::string problem_;
};

}  // namespace foreshard::comm
