#include "sim/allocator/replay.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace foreshard::sim::allocator {
namespace {

using Kind = Event::Kind;

/// Grows as it is asked.
template <typename Value>
Value& slot(std::vector<Value>& all, std::size_t index, Value initial) {
  if (index >= all.size()) all.resize(index + 1, initial);
  return all[index];
}

/// Which events record a block on a stream that is not its own.
std::vector<bool> uses_elsewhere(const std::vector<Event>& events) {
  std::vector<bool> elsewhere(events.size());
  std::vector<Stream> owner;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind == Kind::allocate) slot(owner, events[i].block, 0) = events[i].stream;
    if (events[i].kind == Kind::record_stream) elsewhere[i] = slot(owner, events[i].block, 0) != events[i].stream;
  }
  return elsewhere;
}

/// By event that frees a block: when other streams have passed it. Goes backwards, so that the next free of a block and
/// the next synchronisation of a stream are known. A stream that is never synchronised is done after the
/// end.
std::vector<Nanoseconds> frees_of(const std::vector<Event>& events) {
  const std::vector<bool> elsewhere = uses_elsewhere(events);
  const Nanoseconds end = events.empty() ? 0 : events.back().at + 1;
  std::vector<Nanoseconds> free_at(events.size()), synced;
  std::vector<std::size_t> freed_by;
  for (std::size_t i = events.size(); i-- > 0;) {
    const Event& event = events[i];
    if (event.kind == Kind::sync) slot(synced, std::size_t(event.stream), end) = event.at;
    if (event.kind == Kind::free) {
      slot(freed_by, event.block, events.size()) = i;
      free_at[i] = event.until == not_known ? end : event.until;
    }
    if (!elsewhere[i]) continue;
    if (const std::size_t by = slot(freed_by, event.block, events.size()); by < events.size())
      free_at[by] = std::max(free_at[by], std::min(event.until, slot(synced, std::size_t(event.stream), end)));
  }
  return free_at;
}

}  // namespace

Replay::Replay(const EventList& list, const ReplayOptions& options)
    : list_(&list),
      options_(options),
      allocator_(options.settings, options.device_bytes, options.outside_bytes, options.cost),
      free_at_(frees_of(list.events)) {}

void Replay::step() {
  const Event& event = list_->events[next_];
  now_ = event.at + late_;
  switch (event.kind) {
    case Kind::allocate:
      allocate(event);
      break;
    case Kind::free:
      free(event);
      break;
    case Kind::empty_cache:
      late_ += allocator_.empty_cache(now_) - now_;
      break;
    case Kind::outside:
      allocator_.set_outside(event.bytes);
      break;
    case Kind::phase:
      phase_ = static_cast<int>(event.block);
      break;
    case Kind::record_stream:
    case Kind::sync:
      break;
  }
  ++next_;
}

void Replay::allocate(const Event& event) {
  const Allocation got = allocator_.allocate(event.bytes, event.stream, now_, 0, event.label);
  if (options_.stalls_shift) late_ += got.host_at - now_;
  if (got.out_of_memory) failure_ = allocator_.failure();
  if (event.block >= blocks_.size()) blocks_.resize(event.block + 1);
  blocks_[event.block] = got.block;
}

void Replay::free(const Event& event) {
  FORESHARD_EXPECT(event.block < blocks_.size(), "a block is allocated before it is freed");
  Block* block = std::exchange(blocks_[event.block], nullptr);
  const Nanoseconds until = free_at_[next_];
  if (until == 0 || !options_.hold_for_streams) return allocator_.free(block);
  allocator_.free(block, until + late_);
}

std::vector<const Block*> Replay::live() const {
  std::vector<const Block*> live;
  for (const Block* block : blocks_)
    if (block != nullptr) live.push_back(block);
  return live;
}

Sample Replay::sample() const {
  const Statistics& statistics = allocator_.statistics();
  return {now_, statistics.allocated.current, statistics.active.current, statistics.reserved.current};
}

std::vector<Sample> timeline_of(const EventList& list, const ReplayOptions& options) {
  std::vector<Sample> timeline;
  const auto same = [](const Sample& a, const Sample& b) {
    return a.allocated == b.allocated && a.active == b.active && a.reserved == b.reserved;
  };
  for (Replay replay(list, options); !replay.done();) {
    replay.step();
    if (const Sample sample = replay.sample(); timeline.empty() || !same(timeline.back(), sample))
      timeline.push_back(sample);
  }
  return timeline;
}

std::vector<Sample> coarsened(const std::vector<Sample>& timeline, std::size_t count) {
  if (timeline.size() <= count) return timeline;
  const Nanoseconds begin = timeline.front().at, length = timeline.back().at - begin + 1;
  const auto part_of = [&](const Sample& sample) {
    return static_cast<std::size_t>(static_cast<double>(sample.at - begin) / static_cast<double>(length) *
                                    double(count));
  };
  std::vector<Sample> coarse;
  for (std::size_t last = count; const Sample& sample : timeline) {
    if (const std::size_t part = part_of(sample); coarse.empty() || part != last) {
      coarse.push_back(sample), last = part;
      continue;
    }
    Sample& peak = coarse.back();
    peak.allocated = std::max(peak.allocated, sample.allocated), peak.active = std::max(peak.active, sample.active);
    peak.reserved = std::max(peak.reserved, sample.reserved);
  }
  return coarse;
}

}  // namespace foreshard::sim::allocator
