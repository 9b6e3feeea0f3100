#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "comm/mapping.hpp"
#include "comm/members.hpp"
#include "comm/rendezvous.hpp"
#include "comm/shared_group.hpp"
#include "comm/tally.hpp"

namespace foreshard::comm {

namespace {

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <class T>
T value_of(const std::vector<std::byte>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<Rendezvous> meeting, int rank, int size)
      : meeting_(std::move(meeting)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int node_rank() const override { return rank_; }
  int node_size() const override { return size_; }
  std::string_view transport() const override { return "threads"; }

  std::span<std::byte> arena(std::int64_t size_bytes) override;
  std::vector<std::span<std::byte>> notice_board(std::int64_t size_bytes) override;
  std::unique_ptr<Group> group(std::span<const int> members) override;
  void barrier() override { meeting_->exchange(rank_, {}, "barrier"); }
  void broadcast(std::span<std::byte> data, int root) override;
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> data) override;
  std::vector<std::uint64_t> all_gather_u64(std::uint64_t value) override {
    return all_gather(value, "all_gather_u64");
  }
  Counters counters() const override { return tally_.read(); }
  void expect_running(std::string_view call) const override { meeting_->abort_flag().check(call); }
  void abort(int exit_code) noexcept override { meeting_->abort(rank_, exit_code); }

 private:
  template <class T>
  std::vector<T> all_gather(const T& value, std::string_view call) {
    std::vector<T> values;
    for (const auto& bytes : *meeting_->exchange(rank_, bytes_of(value), call)) values.push_back(value_of<T>(bytes));
    return values;
  }
  std::shared_ptr<const Mapping> region(std::span<const int> members, int index);

  std::shared_ptr<Rendezvous> meeting_;
  int rank_, size_;
  Mapping arena_, notices_;
  std::vector<std::byte*> arenas_;
  Tally tally_;
};

std::span<std::byte> LocalCommunicator::arena(std::int64_t size_bytes) {
  FORESHARD_EXPECT(arenas_.empty(), "a communicator has one arena");
  arena_ = Mapping::anonymous(size_bytes);
  for (const auto size : all_gather(size_bytes, "arena")) {
    FORESHARD_EXPECT(size == size_bytes, fmt::format("arenas of different sizes: {} and {} bytes", size_bytes, size));
  }
  arenas_ = all_gather(arena_.data(), "arena");
  return arena_.bytes();
}

std::vector<std::span<std::byte>> LocalCommunicator::notice_board(std::int64_t size_bytes) {
  FORESHARD_EXPECT(notices_.data() == nullptr, "a communicator has one notice board");
  notices_ = Mapping::anonymous(size_bytes);
  return all_gather(notices_.bytes(), "notice_board");
}

std::unique_ptr<Group> LocalCommunicator::group(std::span<const int> members) {
  FORESHARD_EXPECT(!arenas_.empty(), "a group needs an arena");
  const int index = agree_on_members(*this, members);
  PeerMemory memory{.arena_bytes = arena_.size_bytes(), .index = index};
  for (const int member : members) memory.arenas.push_back(arenas_[member]);
  return std::make_unique<SharedGroup>(std::move(memory), region(members, index), meeting_->abort_flag(), tally_,
                                       spins_for(size_));
}

std::shared_ptr<const Mapping> LocalCommunicator::region(std::span<const int> members, int index) {
  std::shared_ptr<const Mapping> made;
  if (index == 0) {
    made = std::make_shared<const Mapping>(
        Mapping::anonymous(SharedGroup::region_bytes(static_cast<int>(members.size()))));
  }
  const std::vector<const std::shared_ptr<const Mapping>*> offers =
      all_gather<const std::shared_ptr<const Mapping>*>(&made, "group");
  std::shared_ptr<const Mapping> taken = *offers[members.front()];
  barrier();
  return taken;
}

void LocalCommunicator::broadcast(std::span<std::byte> data, int root) {
  const std::span<const std::byte> brought = rank_ == root ? data : std::span<std::byte>();
  const Rendezvous::Everything all = meeting_->exchange(rank_, brought, "broadcast");
  FORESHARD_EXPECT((*all)[root].size() == data.size(), "a broadcast needs the same size on every rank");
  if (rank_ != root && !data.empty()) std::memcpy(data.data(), (*all)[root].data(), data.size());
}

std::vector<std::vector<std::byte>> LocalCommunicator::gather(std::span<const std::byte> data) {
  const Rendezvous::Everything all = meeting_->exchange(rank_, data, "gather");
  return rank_ == 0 ? *all : std::vector<std::vector<std::byte>>();
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_local(int size) {
  FORESHARD_EXPECT(size > 0, "a run has at least one rank");
  const auto meeting = std::make_shared<Rendezvous>(size);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(std::make_unique<LocalCommunicator>(meeting, rank, size));
  return ranks;
}

}  // namespace foreshard::comm
