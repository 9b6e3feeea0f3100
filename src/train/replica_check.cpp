#include "train/replica_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/hash_of_bytes.hpp"
#include "train/agreement.hpp"

namespace foreshard::train {
namespace {

/// Ranks that hold the same shard but not the bits that most of them hold.
struct Difference {
  int rank = 0, reference = 0;
};

/// By majority, in each replica group; of equal parties the one of the lowest rank is right.
std::vector<Difference> differences(const plan::Mesh& mesh, std::span<const std::uint64_t> hashes) {
  std::vector<Difference> found;
  for (int shard = 0; shard < mesh.shard_degree(); ++shard) {
    const std::vector<int> group = mesh.replica_group(shard);
    const auto hash = [&](int rank) { return hashes[static_cast<std::size_t>(rank)]; };
    if (std::ranges::all_of(group, [&](int rank) { return hash(rank) == hash(group.front()); })) continue;
    const auto votes = [&](int rank) { return std::ranges::count(group, hash(rank), hash); };
    const int reference = *std::ranges::max_element(group, {}, votes);
    for (const int rank : group)
      if (hash(rank) != hash(reference)) found.push_back({rank, reference});
  }
  return found;
}

/// The parts of one rank's shards of the parameters, in the order of the plan.
class Shards {
 public:
  explicit Shards(TrainingRank& rank, int index) : rank_(rank), index_(index) {}

  std::uint64_t hash() const {
    Hash all;
    for (std::uint32_t unit = 0; unit < plan().units.size(); ++unit) all.add(hash(unit));
    return all.value();
  }
  std::uint64_t hash(std::uint32_t unit) const { return hash_of(unit, 0, plan().units[unit].shard_elements); }
  /// Of the part of a parameter that lies in this rank's shard.
  std::uint64_t hash(std::uint32_t unit, const plan::FlatPiece& piece) const {
    const auto parts = plan::parts_of_shard(plan().units[unit], index_);
    const auto part = std::ranges::find(parts, &piece, &plan::ShardPart::piece);
    if (part == parts.end()) return hash_of_bytes({});
    return hash_of(unit, part->at, part->count);
  }
  const plan::Plan& plan() const { return rank_.plan(); }

 private:
  /// Of elements [first, first + count) of the shard.
  std::uint64_t hash_of(std::uint32_t unit, std::int64_t first, std::int64_t count) const {
    const std::int64_t size = size_bytes(plan().master);
    std::uint64_t hash = 0;
    rank_.read(rank_.parameter_shard(unit), [&](std::span<const std::byte> bytes) {
      hash =
          hash_of_bytes(bytes.subspan(static_cast<std::size_t>(first * size), static_cast<std::size_t>(count * size)));
    });
    return hash;
  }

  TrainingRank& rank_;
  int index_;
};

/// Collective, after a difference was found: "parameter of unit" that differs first.
std::string place_of_difference(comm::Communicator& communicator, const Shards& shards, const model::Graph& graph) {
  const plan::Plan& plan = shards.plan();
  const auto differs = [&](std::uint64_t hash) {
    return !differences(plan.mesh, communicator.all_gather_u64(hash)).empty();
  };
  for (std::uint32_t unit = 0; unit < plan.units.size(); ++unit) {
    if (!differs(shards.hash(unit))) continue;
    for (const plan::FlatPiece& piece : plan.units[unit].pieces)
      if (differs(shards.hash(unit, piece)))
        return fmt::format("{} of unit {}", graph.parameters[piece.parameter.value].name, plan.unit_names[unit]);
    return fmt::format("the padding of unit {}", plan.unit_names[unit]);
  }
  return "a part that changed meanwhile";
}

std::string text_of(std::span<const Difference> differences) {
  std::string text;
  for (const Difference& d : differences.first(std::min<std::size_t>(differences.size(), 8)))
    text += fmt::format("{}rank {} unlike rank {}", text.empty() ? "" : ", ", d.rank, d.reference);
  return text + (differences.size() > 8 ? fmt::format(" and {} more", differences.size() - 8) : "");
}

}  // namespace

std::string replica_fault(comm::Communicator& communicator, TrainingRank& rank) {
  const plan::Mesh& mesh = rank.plan().mesh;
  if (mesh.replicas == 1) return "";
  const Shards shards(rank, communicator.rank());
  const auto found = differences(mesh, communicator.all_gather_u64(shards.hash()));
  if (found.empty()) return "";
  return fmt::format("ranks hold the same shard of the parameters but not the same values ({}); the first is in {}",
                     text_of(found), place_of_difference(communicator, shards, rank.graph()));
}

void expect_equal_replicas(comm::Communicator& communicator, TrainingRank& rank, std::int64_t step) {
  const std::string fault = replica_fault(communicator, rank);
  together(communicator, [&] {
    if (fault.empty()) return;
    throw InputError(ExitCode::outside,
                     step == 0 ? fault + ", before the first step: give every rank the same configuration and build"
                               : fmt::format("{}, after step {}: the memory, processor or network of one of them is "
                                             "faulty: go on from a checkpoint, without it",
                                             fault, step));
  });
}

}  // namespace foreshard::train
