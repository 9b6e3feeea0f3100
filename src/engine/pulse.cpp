#include "engine/pulse.hpp"

#include <unistd.h>

#include <algorithm>
#include <new>

namespace foreshard::engine {

void Pulse::introduce(int rank) {
  set(rank_, std::int64_t{rank});
  set(process_, std::int64_t{getpid()});
}

Sighting::Sighting(const Pulse& pulse)
    : rank(static_cast<int>(pulse.rank_.load(std::memory_order_relaxed))),
      process(pulse.process_.load(std::memory_order_relaxed)),
      step(pulse.step_.load(std::memory_order_relaxed)),
      running(pulse.running_.load(std::memory_order_relaxed) != 0),
      pausing(pulse.pausing_.load(std::memory_order_relaxed) != 0),
      beats(pulse.beats_.load(std::memory_order_relaxed)) {
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    const auto& from = pulse.lanes_[lane];
    const std::uint64_t op = from.op.load(std::memory_order_relaxed);
    lanes[lane] = {from.entered.load(std::memory_order_relaxed), from.ended.load(std::memory_order_relaxed),
                   static_cast<std::uint32_t>(op >> 32), static_cast<int>(static_cast<std::uint32_t>(op))};
  }
}

std::uint64_t Sighting::ops_ended() const {
  std::uint64_t ended = 0;
  for (const LaneSighting& lane : lanes) ended += lane.ended;
  return ended;
}

PulseBoard::PulseBoard(comm::Communicator& communicator) : world_size_(static_cast<std::size_t>(communicator.size())) {
  const auto notices = communicator.notice_board(sizeof(Pulse));
  own_ = new (notices[static_cast<std::size_t>(communicator.node_rank())].data()) Pulse;
  own_->introduce(communicator.rank());
  communicator.barrier();
  for (const std::span<std::byte> notice : notices)
    if (!notice.empty()) pulses_.push_back(std::launder(reinterpret_cast<Pulse*>(notice.data())));
}

std::vector<Sighting> PulseBoard::look() const {
  std::vector<Sighting> sightings;
  for (const Pulse* pulse : pulses_) sightings.emplace_back(*pulse);
  return sightings;
}

}  // namespace foreshard::engine
