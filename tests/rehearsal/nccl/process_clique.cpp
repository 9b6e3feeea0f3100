#include "rehearsal/nccl/process_clique.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

#include "rehearsal/runtime/state.hpp"

namespace rehearsal {
namespace {

constexpr int most_ranks = 16;
constexpr std::size_t most_splits = 8,
                      most_bytes = std::size_t{64} << 20;  // of one rank's part; only what is used has memory
constexpr auto poll_interval = std::chrono::microseconds(50);

}  // namespace

/// What one rank says. Numbers are those of its last collective, from 1.
struct ProcessClique::Rank {
  std::atomic<int> device;  ///< 1 + its place on the node; 0 until it has come
  std::atomic<std::uint64_t> sent, received;
  Collective part;  ///< that it has sent; where its pointers lead only it knows
  std::atomic<bool> wished[most_splits];
  Split::Wish wishes[most_splits];
};

/// Zeroed by the system. Behind it come the bytes that each rank has sent.
struct ProcessClique::Shared {
  std::atomic<bool> broken;
  Rank ranks[most_ranks];
};

ProcessClique::ProcessClique(std::string name, int size) : name_("/" + name), size_(size) {
  const std::size_t bytes = sizeof(Shared) + static_cast<std::size_t>(size) * most_bytes;
  const int file = shm_open(name_.c_str(), O_CREAT | O_RDWR, 0600);
  void* memory = MAP_FAILED;
  if (size <= most_ranks && file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0)
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "shared memory " + name_);
  shared_ = static_cast<Shared*>(memory);
}

ProcessClique::~ProcessClique() {
  shm_unlink(name_.c_str());
  munmap(shared_, sizeof(Shared) + static_cast<std::size_t>(size_) * most_bytes);
}

ProcessClique::Rank& ProcessClique::of(int rank) const { return shared_->ranks[rank]; }

char* ProcessClique::sent_by(int rank) const {
  return reinterpret_cast<char*>(shared_ + 1) + static_cast<std::size_t>(rank) * most_bytes;
}

std::string ProcessClique::join(int rank, int device) {
  if (rank < 0 || rank >= size_) return fmt::format("rank {} of {}", rank, size_);
  int nobody = 0;
  if (!of(rank).device.compare_exchange_strong(nobody, device + 1)) return fmt::format("rank {} came twice", rank);
  rank_ = rank;
  device_ = device;
  if (complete()) shm_unlink(name_.c_str());  // all who have come have it mapped
  for (int other = 0; other < size_; ++other)
    if (other != rank && of(other).device == device + 1) return duplicate_text(rank, other, device);
  return {};
}

bool ProcessClique::complete() const {
  for (int rank = 0; rank < size_; ++rank)
    if (of(rank).device == 0) return false;
  return true;
}

template <class Holds>
bool ProcessClique::await(const Fate& fate, Holds holds) const {
  while (!holds()) {
    if (fate.aborted || shared_->broken) return false;
    std::this_thread::sleep_for(poll_interval);
  }
  return !shared_->broken;
}

bool ProcessClique::all_have(std::atomic<std::uint64_t> Rank::*passed, std::uint64_t number) const {
  for (int rank = 0; rank < size_; ++rank)
    if (of(rank).*passed < number) return false;
  return true;
}

void ProcessClique::meet(int rank, const Collective& part, Fate& fate) {
  const std::lock_guard lock(meeting_);
  const std::uint64_t number = ++met_;
  if (!await(fate, [&] { return all_have(&Rank::received, number - 1); })) return fail(fate);
  send(rank, part, number);
  if (!await(fate, [&] { return all_have(&Rank::sent, number); })) return fail(fate);
  compare(rank, number);
  if (shared_->broken) return fail(fate);
  receive(rank, part);
  of(rank).received = number;
}

void ProcessClique::send(int rank, const Collective& part, std::uint64_t number) {
  if (part.send_bytes(size_) > most_bytes) {
    report(fmt::format("{} is more than is rehearsed between processes", part.text()));
    shared_->broken = true;
    return;
  }
  std::memcpy(sent_by(rank), part.send, part.send_bytes(size_));
  of(rank).part = part;
  of(rank).sent = number;
}

void ProcessClique::compare(int rank, std::uint64_t number) const {
  for (int other = 0; other < size_ && !shared_->broken; ++other) {
    if (of(rank).part.matches(of(other).part)) continue;
    report(mismatch_text(number - 1, size_, rank, of(rank).part, other, of(other).part));
    shared_->broken = true;
  }
}

/// The others' results go where nobody reads them.
void ProcessClique::receive(int rank, const Collective& part) const {
  std::vector<char> unread(part.receive_bytes(size_));
  std::vector<Collective> parts;
  for (int one = 0; one < size_; ++one) {
    parts.push_back(part);
    parts.back().send = sent_by(one);
    if (one != rank) parts.back().receive = unread.data();
  }
  carry_out(parts);
}

/// Also where only this rank was aborted: then nobody looks.
void ProcessClique::fail(Fate& fate) const {
  if (!shared_->broken) return;
  fate.error = ncclInvalidUsage;
  fail_device(current_device(), cudaErrorLaunchFailure);
}

void ProcessClique::ask_for_split(int rank, std::size_t number, Split::Wish wish) {
  of(rank).wishes[number] = wish;
  of(rank).wished[number] = true;
}

const Clique::Split* ProcessClique::split(std::size_t number) const {
  for (int rank = 0; rank < size_; ++rank)
    if (!of(rank).wished[number]) return nullptr;
  const std::lock_guard lock(mutex_);
  Split& split = splits_[number];
  if (split.complete) return &split;
  for (int rank = 0; rank < size_; ++rank) split.wishes.emplace_back(of(rank).wishes[number]);
  const auto members = split.deal();
  if (const int color = split.wishes[static_cast<std::size_t>(rank_)]->color; color >= 0) {
    auto part = std::make_shared<ProcessClique>(fmt::format("{}-{}-{}", name_.substr(1), number, color),
                                                static_cast<int>(members.at(color).size()));
    part->join(split.ranks[static_cast<std::size_t>(rank_)], device_);
    split.parts[color] = std::move(part);
  }
  return &split;
}

}  // namespace rehearsal
