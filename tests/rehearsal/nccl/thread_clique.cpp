#include "rehearsal/nccl/thread_clique.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rehearsal/runtime/state.hpp"

namespace rehearsal {

ThreadClique::ThreadClique(int size) : size_(size), devices_(size, -1), next_(size) {}

std::string ThreadClique::join(int rank, int device) {
  const std::lock_guard lock(mutex_);
  if (rank < 0 || rank >= size_) return fmt::format("rank {} of {}", rank, size_);
  if (devices_[rank] >= 0) return fmt::format("rank {} came twice", rank);
  const auto other = std::ranges::find(devices_, device);
  if (other != devices_.end()) return duplicate_text(rank, static_cast<int>(other - devices_.begin()), device);
  devices_[rank] = device;
  ++joined_;
  changed_.notify_all();
  return {};
}

bool ThreadClique::complete() const {
  const std::lock_guard lock(mutex_);
  return joined_ == size_;
}

void ThreadClique::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void ThreadClique::meet(int rank, const Collective& part, Fate& fate) {
  std::unique_lock lock(mutex_);
  const std::uint64_t number = next_[rank]++;
  Round& round = rounds_[number];
  arrive(round, number, rank, part);
  changed_.wait(lock, [&] { return round.done || broken_ || fate.aborted; });
  if (broken_) fate.error = ncclInvalidUsage;
  if (!round.done) withdraw(round, rank);
  if (round.done && ++round.left == size_) rounds_.erase(number);
}

/// So that nobody touches the buffers of a rank that has given up.
void ThreadClique::withdraw(Round& round, int rank) {
  round.parts[rank].reset();
  --round.arrived;
}

void ThreadClique::arrive(Round& round, std::uint64_t number, int rank, const Collective& part) {
  round.parts.resize(size_);
  round.parts[rank] = part;
  ++round.arrived;
  compare(round, number, rank);
  if (round.arrived < size_ || broken_) return;
  std::vector<Collective> parts;
  for (const auto& one : round.parts) parts.push_back(*one);
  carry_out(parts);
  round.done = true;
  changed_.notify_all();
}

void ThreadClique::compare(const Round& round, std::uint64_t number, int rank) {
  for (int other = 0; other < size_ && !broken_; ++other) {
    if (!round.parts[other] || round.parts[rank]->matches(*round.parts[other])) continue;
    report(mismatch_text(number, size_, rank, *round.parts[rank], other, *round.parts[other]));
    broken_ = true;
    for (const int device : devices_) fail_device(device, cudaErrorLaunchFailure);
    changed_.notify_all();
  }
}

void ThreadClique::ask_for_split(int rank, std::size_t number, Split::Wish wish) {
  const std::lock_guard lock(mutex_);
  Split& split = splits_[number];
  split.wishes.resize(size_);
  split.wishes[rank] = wish;
  if (split.has_all()) make_parts(split);
  changed_.notify_all();
}

void ThreadClique::make_parts(Split& split) {
  for (const auto& [color, members] : split.deal()) {
    auto part = std::make_shared<ThreadClique>(static_cast<int>(members.size()));
    for (int i = 0; i < part->size(); ++i) part->join(i, devices_[members[i]]);
    split.parts[color] = std::move(part);
  }
}

const Clique::Split* ThreadClique::split(std::size_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = splits_.find(number);
  return found != splits_.end() && found->second.complete ? &found->second : nullptr;
}

}  // namespace rehearsal
