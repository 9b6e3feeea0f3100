#include "comm/mpi_communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "comm/mapping.hpp"
#include "comm/members.hpp"
#include "comm/mpi_host.hpp"
#include "comm/mpi_message_group.hpp"
#include "comm/mpi_node_memory.hpp"
#include "comm/shared_group.hpp"
#include "comm/tally.hpp"

namespace foreshard::comm {

namespace {

MpiComm copy_of_world() {
  MPI_Comm comm = MPI_COMM_NULL;
  mpi_call("MPI_Comm_dup", MPI_Comm_dup, MPI_COMM_WORLD, &comm);
  return MpiComm(comm);
}

MpiComm ranks_of_this_node(MPI_Comm world, int at_most) {
  MPI_Comm comm = MPI_COMM_NULL;
  mpi_call("MPI_Comm_split_type", MPI_Comm_split_type, world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
  MpiComm node(comm);
  if (at_most <= 0) return node;
  mpi_call("MPI_Comm_split", MPI_Comm_split, node.get(), node.rank() / at_most, 0, &comm);
  return MpiComm(comm);
}

MpiComm comm_of(MPI_Comm world, std::span<const int> members, int tag) {
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  mpi_call("MPI_Comm_group", MPI_Comm_group, world, &all);
  mpi_call("MPI_Group_incl", MPI_Group_incl, all, static_cast<int>(members.size()), members.data(), &some);
  mpi_call("MPI_Comm_create_group", MPI_Comm_create_group, world, some, tag, &comm);
  mpi_call("MPI_Group_free", MPI_Group_free, &some);
  mpi_call("MPI_Group_free", MPI_Group_free, &all);
  return MpiComm(comm);
}

class MpiCommunicator final : public Communicator {
 public:
  explicit MpiCommunicator(const MpiOptions& options);

  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  int node_rank() const override { return node_.rank(); }
  int node_size() const override { return node_.size(); }
  std::string_view transport() const override { return transport_; }

  std::span<std::byte> arena(std::int64_t size_bytes) override;
  std::vector<std::span<std::byte>> notice_board(std::int64_t size_bytes) override;
  std::unique_ptr<Group> group(std::span<const int> members) override;
  void barrier() override { world_.barrier(abort_flag()); }
  void broadcast(std::span<std::byte> data, int root) override { world_.broadcast(data, root, abort_flag()); }
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> data) override {
    return world_.gather(data, abort_flag());
  }
  std::vector<std::uint64_t> all_gather_u64(std::uint64_t value) override {
    return world_.all_gather(value, abort_flag(), "all_gather_u64");
  }
  Counters counters() const override { return tally_.read(); }
  void expect_running(std::string_view call) const override { abort_flag().check(call); }
  void abort(int exit_code) noexcept override { MpiSession::abort(abort_flag().raise(rank(), exit_code)); }

 private:
  /// A rank of the run: its node, named by the world rank of the node's first rank, and its place there.
  struct Place {
    int node = 0;
    int node_rank = 0;
  };

  AbortFlag& abort_flag() const { return *abort_.load(); }
  Place own_place() const;
  std::string share_arena(std::int64_t size_bytes);
  std::string agreed(const std::string& problem);
  std::string name_of_transport(const std::string& problem) const;
  bool reach_each_other(std::span<const int> members) const;
  PeerMemory memory_of(std::span<const int> members, int index) const;
  std::shared_ptr<const Mapping> region(std::span<const int> members, int index, bool shared);

  MpiOptions options_;
  MpiHost world_, node_;
  AbortFlag own_flag_;  // before what is gathered under it
  std::vector<Place> places_;
  Tally tally_;
  std::atomic<AbortFlag*> abort_{&own_flag_};
  std::span<std::byte> arena_;
  bool has_arena_ = false;
  Mapping private_arena_;
  std::optional<MpiNodeMemory> shared_arena_, notices_;
  Mapping private_notices_;
  std::string transport_ = "mpi";
};

MpiCommunicator::MpiCommunicator(const MpiOptions& options)
    : options_(options),
      world_(copy_of_world(), options.longest_message_bytes),
      node_(ranks_of_this_node(world_.get(), options.ranks_per_node), options.longest_message_bytes),
      places_(world_.all_gather(own_place(), own_flag_, "make_mpi")) {}

MpiCommunicator::Place MpiCommunicator::own_place() const {
  return {node_.all_gather(world_.rank(), own_flag_, "make_mpi").front(), node_.rank()};
}

std::span<std::byte> MpiCommunicator::arena(std::int64_t size_bytes) {
  FORESHARD_EXPECT(!std::exchange(has_arena_, true), "a communicator has one arena");
  for (const std::uint64_t size : all_gather_u64(static_cast<std::uint64_t>(size_bytes))) {
    FORESHARD_EXPECT(size == static_cast<std::uint64_t>(size_bytes),
                     fmt::format("arenas of different sizes: {} and {} bytes", size_bytes, size));
  }
  const std::string problem = agreed(share_arena(size_bytes));
  transport_ = name_of_transport(problem);
  if (shared_arena_ && problem.empty()) {
    abort_ = &shared_arena_->abort_flag();
    return arena_ = shared_arena_->arena();
  }
  shared_arena_.reset();
  private_arena_ = Mapping::anonymous(size_bytes);
  return arena_ = private_arena_.bytes();
}

/// Not agreed on: a rank that cannot see its neighbours' notices goes without.
std::vector<std::span<std::byte>> MpiCommunicator::notice_board(std::int64_t size_bytes) {
  FORESHARD_EXPECT(!notices_ && private_notices_.data() == nullptr, "a communicator has one notice board");
  std::vector<std::span<std::byte>> notices(static_cast<std::size_t>(node_.size()));
  if (options_.shared_memory && node_.size() > 1) notices_.emplace(node_, size_bytes, abort_flag());
  if (notices_ && notices_->problem().empty()) {
    for (int rank = 0; rank < node_.size(); ++rank)
      notices[rank] = {notices_->arena_of(rank), static_cast<std::size_t>(size_bytes)};
    return notices;
  }
  private_notices_ = Mapping::anonymous(size_bytes);
  notices[node_.rank()] = private_notices_.bytes();
  return notices;
}

/// What went wrong on this rank.
std::string MpiCommunicator::share_arena(std::int64_t size_bytes) {
  if (!options_.shared_memory) return "shared memory switched off";
  if (node_.size() == 1) return "";
  shared_arena_.emplace(node_, size_bytes, own_flag_);
  return shared_arena_->problem();
}

/// The first rank's problem, on all ranks.
std::string MpiCommunicator::agreed(const std::string& problem) {
  const std::vector<std::uint64_t> lengths = all_gather_u64(problem.size());
  const auto first = std::find_if(lengths.begin(), lengths.end(), [](std::uint64_t length) { return length > 0; });
  if (first == lengths.end()) return "";
  std::string shared = problem;
  shared.resize(*first);
  broadcast(std::as_writable_bytes(std::span(shared)), static_cast<int>(first - lengths.begin()));
  return shared;
}

std::string MpiCommunicator::name_of_transport(const std::string& problem) const {
  const bool one_node = node_.size() == world_.size();
  const bool some_share =
      std::any_of(places_.begin(), places_.end(), [](const Place& place) { return place.node_rank > 0; });
  if (!problem.empty()) return fmt::format("mpi messages (no shared memory: {})", problem);
  if (world_.size() == 1) return "mpi, one rank";
  if (one_node) return "mpi shared memory";
  return some_share ? "mpi shared memory inside nodes, mpi messages between them" : "mpi messages (one rank per node)";
}

bool MpiCommunicator::reach_each_other(std::span<const int> members) const {
  if (members.size() == 1) return true;
  const auto here = [&](int member) { return places_[member].node == places_[rank()].node; };
  return shared_arena_.has_value() && std::all_of(members.begin(), members.end(), here);
}

PeerMemory MpiCommunicator::memory_of(std::span<const int> members, int index) const {
  PeerMemory memory{.arena_bytes = static_cast<std::int64_t>(arena_.size()), .index = index};
  for (const int member : members) {
    memory.arenas.push_back(member == rank() ? arena_.data() : shared_arena_->arena_of(places_[member].node_rank));
  }
  return memory;
}

/// Collective over all ranks, also those whose groups share no memory.
std::shared_ptr<const Mapping> MpiCommunicator::region(std::span<const int> members, int index, bool shared) {
  const std::int64_t bytes = SharedGroup::region_bytes(static_cast<int>(members.size()));
  const bool first = shared && index == 0;
  Mapping region = first ? (members.size() == 1 ? Mapping::anonymous(bytes) : Mapping::shared(bytes)) : Mapping();
  const MappingName own = first && members.size() > 1 ? region.name() : MappingName();
  const std::vector<MappingName> names = world_.all_gather(own, abort_flag(), "group");
  if (shared && !first) region = Mapping::attach(names[members.front()], bytes);
  barrier();
  region.close_name();
  return std::make_shared<const Mapping>(std::move(region));
}

std::unique_ptr<Group> MpiCommunicator::group(std::span<const int> members) {
  FORESHARD_EXPECT(has_arena_, "a group needs an arena");
  const int index = agree_on_members(*this, members);
  const bool shared = reach_each_other(members);
  std::shared_ptr<const Mapping> signals = region(members, index, shared);
  if (shared) {
    return std::make_unique<SharedGroup>(memory_of(members, index), std::move(signals), abort_flag(), tally_,
                                         spins_for(node_.size()));
  }
  return std::make_unique<MpiMessageGroup>(comm_of(world_.get(), members, members.front()), abort_flag(), tally_,
                                           options_.longest_message_bytes);
}

}  // namespace

std::unique_ptr<Communicator> make_mpi(const MpiOptions& options) { return std::make_unique<MpiCommunicator>(options); }

}  // namespace foreshard::comm
