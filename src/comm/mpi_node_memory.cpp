#include "comm/mpi_node_memory.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace foreshard::comm {

namespace {

constexpr std::int64_t page_bytes = 4096;

/// Runs `step`; returns what went wrong.
template <class Step>
std::string problem_of(Step step) {
  try {
    step();
  } catch (const LibraryError& error) {
    return error.what();
  }
  return "";
}

bool all_made(std::span<const MappingName> names) {
  return std::all_of(names.begin(), names.end(), [](const MappingName& name) { return name.descriptor >= 0; });
}

}  // namespace

MpiNodeMemory::MpiNodeMemory(const MpiHost& node, std::int64_t arena_bytes, const AbortFlag& abort)
    : arena_bytes_(arena_bytes),
      segment_bytes_((arena_bytes + page_bytes - 1) / page_bytes * page_bytes + page_bytes),
      node_rank_(node.rank()) {
  MappingName name;
  problem_ = problem_of([&] {
    own_ = Mapping::shared(segment_bytes_);
    name = own_.name();
  });
  const std::vector<MappingName> names = node.all_gather(name, abort, "arena");
  if (all_made(names)) problem_ = problem_of([&] { attach(names); });
  node.barrier(abort);
  own_.close_name();
}

void MpiNodeMemory::attach(std::span<const MappingName> names) {
  for (int rank = 0; rank < static_cast<int>(names.size()); ++rank) {
    others_.push_back(rank == node_rank_ ? Mapping() : Mapping::attach(names[rank], segment_bytes_));
  }
}

AbortFlag& MpiNodeMemory::abort_flag() const {
  return *reinterpret_cast<AbortFlag*>(arena_of(0) + segment_bytes_ - page_bytes);
}

}  // namespace foreshard::comm
