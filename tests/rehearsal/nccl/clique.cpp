#include "rehearsal/nccl/clique.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rehearsal/nccl/process_clique.hpp"
#include "rehearsal/nccl/thread_clique.hpp"
#include "rehearsal/runtime/job.hpp"

namespace rehearsal {

bool Clique::Split::has_all() const {
  return std::ranges::all_of(wishes, [](const auto& one) { return one.has_value(); });
}

std::map<int, std::vector<int>> Clique::Split::deal() {
  std::map<int, std::vector<std::pair<int, int>>> keys;
  for (int rank = 0; rank < static_cast<int>(wishes.size()); ++rank)
    if (wishes[rank]->color >= 0) keys[wishes[rank]->color].emplace_back(wishes[rank]->key, rank);
  ranks.assign(wishes.size(), -1);
  std::map<int, std::vector<int>> members;
  for (auto& [color, part] : keys) {
    std::ranges::sort(part);
    for (const auto& [key, rank] : part) {
      ranks[rank] = static_cast<int>(members[color].size());
      members[color].push_back(rank);
    }
  }
  complete = true;
  return members;
}

std::string duplicate_text(int rank, int other, int device) {
  return fmt::format("Duplicate GPU detected: rank {} and rank {} both on device {}", rank, other, device);
}

std::string mismatch_text(std::uint64_t number, int size, int rank, const Collective& own, int other,
                          const Collective& of_other) {
  return fmt::format(
      "collective {} of a communicator of {} ranks is {} on rank {}, but {} on rank {}: NCCL would hang or mix up "
      "their bytes",
      number, size, own.text(), rank, of_other.text(), other);
}

std::shared_ptr<Clique> make_clique(const std::string& id, int size) {
  if (job().processes) return std::make_shared<ProcessClique>(id, size);
  return std::make_shared<ThreadClique>(size);
}

}  // namespace rehearsal
