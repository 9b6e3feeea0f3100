#include "rehearsal/nccl/clique.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rehearsal/runtime/state.hpp"

namespace rehearsal {

Clique::Clique(int size) : size_(size), devices_(size, -1), next_(size) {}

std::string Clique::join(int rank, int device) {
  const std::lock_guard lock(mutex_);
  if (rank < 0 || rank >= size_) return fmt::format("rank {} of {}", rank, size_);
  if (devices_[rank] >= 0) return fmt::format("rank {} came twice", rank);
  const auto other = std::ranges::find(devices_, device);
  if (other != devices_.end())
    return fmt::format("Duplicate GPU detected: rank {} and rank {} both on device {}", rank, other - devices_.begin(),
                       device);
  devices_[rank] = device;
  ++joined_;
  changed_.notify_all();
  return {};
}

bool Clique::complete() const {
  const std::lock_guard lock(mutex_);
  return joined_ == size_;
}

bool Clique::wait_until_complete(const Fate& fate) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return joined_ == size_ || fate.aborted; });
  return joined_ == size_;
}

void Clique::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Clique::meet(int rank, const Collective& part, Fate& fate) {
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
void Clique::withdraw(Round& round, int rank) {
  round.parts[rank].reset();
  --round.arrived;
}

void Clique::arrive(Round& round, std::uint64_t number, int rank, const Collective& part) {
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

void Clique::compare(const Round& round, std::uint64_t number, int rank) {
  for (int other = 0; other < size_ && !broken_; ++other) {
    if (!round.parts[other] || round.parts[rank]->matches(*round.parts[other])) continue;
    report(
        fmt::format("collective {} of a communicator of {} ranks is {} on rank {}, but {} on rank {}: NCCL would hang "
                    "or mix up their bytes",
                    number, size_, round.parts[rank]->text(), rank, round.parts[other]->text(), other));
    broken_ = true;
    for (const int device : devices_) fail_device(device, cudaErrorLaunchFailure);
    changed_.notify_all();
  }
}

void Clique::ask_for_split(int rank, std::size_t number, Split::Wish wish) {
  const std::lock_guard lock(mutex_);
  Split& split = splits_[number];
  split.wishes.resize(size_);
  split.wishes[rank] = wish;
  if (std::ranges::all_of(split.wishes, [](const auto& one) { return one.has_value(); })) complete(split);
  changed_.notify_all();
}

/// Ranks of a part are in order of key, then of rank here.
void Clique::complete(Split& split) {
  std::map<int, std::vector<std::pair<int, int>>> members;
  for (int rank = 0; rank < size_; ++rank)
    if (split.wishes[rank]->color >= 0) members[split.wishes[rank]->color].emplace_back(split.wishes[rank]->key, rank);
  split.ranks.assign(size_, -1);
  for (auto& [color, part] : members) {
    std::ranges::sort(part);
    auto clique = std::make_shared<Clique>(static_cast<int>(part.size()));
    for (int i = 0; i < clique->size(); ++i) {
      split.ranks[part[i].second] = i;
      clique->join(i, devices_[part[i].second]);
    }
    split.parts[color] = std::move(clique);
  }
  split.complete = true;
}

const Clique::Split* Clique::split(std::size_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = splits_.find(number);
  return found != splits_.end() && found->second.complete ? &found->second : nullptr;
}

}  // namespace rehearsal
