#include "unit/allocator/list_allocator.hpp"

#include <algorithm>
#include <cmath>

namespace foreshard::sim::allocator {

ListAllocator::Ask ListAllocator::ask_of(Bytes bytes, int stream) const {
  Ask ask{bytes, std::max<Bytes>(512, (bytes + 511) / 512 * 512), 0, stream, false};
  const int power = bytes > 0 ? static_cast<int>(std::floor(std::log2(static_cast<double>(bytes)))) : 0;
  const int parts = settings_.divisions[std::size_t(std::clamp(power, 20, 35) - 20)];
  if (parts > 1 && bytes > 512 * parts) {
    ask.rounded = Bytes{1} << power;
    const Bytes step = ask.rounded / parts;
    while (ask.rounded < bytes) ask.rounded += step;
  }
  ask.small = ask.rounded <= mib;
  ask.segment = ask.small                ? 2 * mib
                : ask.rounded < 10 * mib ? settings_.large_segment_bytes
                                         : (ask.rounded + 2 * mib - 1) / (2 * mib) * (2 * mib);
  return ask;
}

ListAllocator::Answer ListAllocator::allocate(Bytes bytes, int stream, Nanoseconds now, Nanoseconds idle_at) {
  process(now);
  clock_ = now, idle_at_ = idle_at;
  const Ask ask = ask_of(bytes, stream);
  Spot spot;
  if (settings_.memory_fraction > 0 && settings_.garbage_collection_threshold > 0) ++searches_[ask.small];
  bool found = search(ask, spot);
  if (!found) {
    collect();
    found = extend(ask, spot);
    if (!found && release_oversize(ask)) found = extend(ask, spot);
    if (!found) {
      release_all();
      ++statistics_.retries;
      found = extend(ask, spot);
    }
  }
  if (!found) {
    ++statistics_.ooms;
    return {-1, clock_};
  }
  auto& pieces = segments_[spot.segment].pieces;
  const Bytes rest = at(spot).size - ask.rounded;
  const bool fine = ask.small || settings_.expandable_segments;
  if (fine ? rest >= 512 : (rest > mib && ask.rounded < settings_.max_split_bytes)) {
    pieces.insert(pieces.begin() + static_cast<long>(spot.piece) + 1, {rest, 0, State::free, -1, searches_[ask.small]});
    at(spot).size = ask.rounded;
  }
  at(spot).state = State::held;
  at(spot).requested = bytes;
  at(spot).name = names_;
  observe();
  return {names_++, clock_};
}

Bytes ListAllocator::growth(const Spot& spot) const {
  const auto& pieces = segments_[spot.segment].pieces;
  const bool grows = spot.piece + 1 < pieces.size() && pieces[spot.piece + 1].state == State::unmapped;
  return pieces[spot.piece].size + (grows ? pieces[spot.piece + 1].size : 0);
}

bool ListAllocator::search(const Ask& ask, Spot& spot) {
  std::vector<Spot> fitting;
  for (std::size_t s = 0; s < segments_.size(); ++s)
    for (std::size_t p = 0; p < segments_[s].pieces.size(); ++p)
      if (segments_[s].stream == ask.stream && segments_[s].small == ask.small &&
          segments_[s].pieces[p].state == State::free && segments_[s].pieces[p].size >= ask.rounded)
        fitting.push_back({s, p});
  if (fitting.empty()) return false;
  std::stable_sort(fitting.begin(), fitting.end(),
                   [&](const Spot& a, const Spot& b) { return at(a).size < at(b).size; });
  std::size_t best = 0;
  if (settings_.expandable_segments)
    while (best + 1 < fitting.size() && growth(fitting[best + 1]) < growth(fitting[best])) ++best;
  spot = fitting[best];
  const Bytes limit = settings_.max_split_bytes, size = at(spot).size;
  if (ask.rounded < limit && size >= limit) return false;
  return !(ask.rounded >= limit && size >= ask.rounded + settings_.max_unsplit_excess_bytes);
}

bool ListAllocator::extend(const Ask& ask, Spot& spot) {
  if (settings_.memory_fraction > 0 &&
      reserved() + ask.segment > static_cast<Bytes>(settings_.memory_fraction * static_cast<double>(device_)))
    return false;
  if (settings_.expandable_segments) return extend_expandable(ask, spot);
  if (ask.segment > driver_free()) return false;
  segments_.push_back({ask.stream, ask.small, false, {{ask.segment, 0, State::held, -1, 0}}});
  clock_ += cost_.of_malloc(ask.segment);
  ++statistics_.device_allocs;
  spot = {segments_.size() - 1, 0};
  observe();
  return true;
}

/// Free and unmapped pieces that follow each other are one room; the first that is large enough and holds or touches
/// unmapped memory serves, from its beginning.
bool ListAllocator::extend_expandable(const Ask& ask, Spot& spot) {
  for (std::size_t s = 0; s <= segments_.size(); ++s) {
    if (s == segments_.size()) {
      const Bytes page = ask.small ? 2 * mib : settings_.large_segment_bytes;
      const Bytes range = (device_ + device_ / 8 + page - 1) / page * page;
      segments_.push_back({ask.stream, ask.small, true, {{range, 0, State::unmapped, -1, 0}}});
    }
    Segment& segment = segments_[s];
    if (segment.stream != ask.stream || segment.small != ask.small) continue;
    for (std::size_t first = 0; first < segment.pieces.size(); ++first) {
      if (segment.pieces[first].state != State::unmapped) continue;
      if (first > 0 && segment.pieces[first - 1].state == State::free) --first;
      Bytes room = 0;
      for (std::size_t p = first; p < segment.pieces.size() && room < ask.rounded; ++p) {
        if (segment.pieces[p].state != State::unmapped && segment.pieces[p].state != State::free) break;
        room += segment.pieces[p].size;
      }
      if (room < ask.rounded) {
        while (segment.pieces[first].state != State::unmapped) ++first;
        continue;
      }
      spot = {s, first};
      while (at(spot).state == State::unmapped || at(spot).size < ask.rounded) {
        const bool here = at(spot).state == State::unmapped;
        const Spot hole{s, here ? first : first + 1};
        const Bytes missing = here ? ask.rounded : ask.rounded - at(spot).size;
        if (!map(hole, std::min(missing, at(hole).size))) return false;
      }
      return true;
    }
  }
  return false;
}

bool ListAllocator::map(Spot spot, Bytes bytes) {
  Segment& segment = segments_[spot.segment];
  const Bytes page = page_of(segment), mapped = (bytes + page - 1) / page * page;
  if (mapped > driver_free()) return false;
  const Bytes rest = at(spot).size - mapped;
  at(spot) = {mapped, 0, State::free, -1, searches_[segment.small]};
  if (rest > 0)
    segment.pieces.insert(segment.pieces.begin() + static_cast<long>(spot.piece) + 1,
                          {rest, 0, State::unmapped, -1, 0});
  join(segment);
  clock_ += cost_.of_map(mapped / page);
  ++statistics_.device_allocs;
  observe();
  return true;
}

/// Neighbours that are both free, or both unmapped, become one.
void ListAllocator::join(Segment& segment) {
  auto& pieces = segment.pieces;
  for (std::size_t p = 0; p + 1 < pieces.size();) {
    const State state = pieces[p].state;
    if (state == pieces[p + 1].state && (state == State::free || state == State::unmapped)) {
      pieces[p].size += pieces[p + 1].size;
      pieces[p].since = searches_[segment.small];
      pieces.erase(pieces.begin() + static_cast<long>(p) + 1);
    } else {
      ++p;
    }
  }
}

ListAllocator::Spot ListAllocator::find(int name) const {
  for (std::size_t s = 0; s < segments_.size(); ++s)
    for (std::size_t p = 0; p < segments_[s].pieces.size(); ++p)
      if (segments_[s].pieces[p].name == name) return {s, p};
  return {segments_.size(), 0};
}

void ListAllocator::free(int name) { return_piece(name); }

void ListAllocator::free(int name, Nanoseconds completes_at) {
  at(find(name)).state = State::waiting;
  events_.emplace(completes_at, name);
  observe();
}

void ListAllocator::return_piece(int name) {
  const Spot spot = find(name);
  Segment& segment = segments_[spot.segment];
  at(spot) = {at(spot).size, 0, State::free, -1, searches_[segment.small]};
  join(segment);
  observe();
}

void ListAllocator::process(Nanoseconds until) {
  while (!events_.empty() && events_.begin()->first <= until) {
    const int name = events_.begin()->second;
    events_.erase(events_.begin());
    return_piece(name);
  }
}

void ListAllocator::collect() {
  if (settings_.memory_fraction <= 0 || settings_.garbage_collection_threshold <= 0) return;
  const auto allowed = static_cast<Bytes>(settings_.memory_fraction * static_cast<double>(device_));
  const auto threshold = static_cast<Bytes>(settings_.garbage_collection_threshold * static_cast<double>(allowed));
  const Bytes goal = reserved() - threshold;
  const auto idle = [&](const Segment& segment) {
    return !segment.small && segment.pieces.size() == 1 && segment.pieces[0].state == State::free;
  };
  for (Bytes done = 0; done < goal;) {
    double sum = 0, count = 0;
    for (const Segment& segment : segments_)
      if (idle(segment)) sum += double(searches_[false] - segment.pieces[0].since), ++count;
    if (count == 0) return;
    for (std::size_t s = segments_.size(); s-- > 0;)
      if (idle(segments_[s]) && double(searches_[false] - segments_[s].pieces[0].since) >= sum / count) {
        done += segments_[s].pieces[0].size;
        release(s);
      }
  }
}

bool ListAllocator::release_oversize(const Ask& ask) {
  if (settings_.max_split_bytes == Settings::unlimited || settings_.expandable_segments) return false;
  const Bytes wanted = std::max(ask.rounded, settings_.max_split_bytes);
  Bytes done = 0;
  while (done < wanted) {
    std::size_t smallest = segments_.size(), largest = segments_.size();
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const Segment& segment = segments_[s];
      if (segment.stream != ask.stream || segment.small != ask.small) continue;
      if (segment.pieces.size() != 1 || segment.pieces[0].state != State::free) continue;
      const Bytes size = segment.pieces[0].size;
      if (size < settings_.max_split_bytes) continue;
      if (largest == segments_.size() || size >= segments_[largest].pieces[0].size) largest = s;
      if (size >= wanted && (smallest == segments_.size() || size < segments_[smallest].pieces[0].size)) smallest = s;
    }
    if (done == 0 && smallest != segments_.size()) return release(smallest), true;
    if (largest == segments_.size()) return false;
    done += segments_[largest].pieces[0].size;
    release(largest);
  }
  return true;
}

void ListAllocator::release_all() {
  ++statistics_.syncs;
  if (!events_.empty()) clock_ = std::max(clock_, events_.rbegin()->first);
  process(clock_);
  for (std::size_t s = segments_.size(); s-- > 0;)
    if (segments_[s].expandable)
      unmap_whole_pages(s);
    else if (segments_[s].pieces.size() == 1 && segments_[s].pieces[0].state == State::free)
      release(s);
}

void ListAllocator::release(std::size_t segment) {
  clock_ = std::max(clock_, idle_at_) + cost_.of_free(segments_[segment].pieces[0].size);
  ++statistics_.device_frees;
  segments_.erase(segments_.begin() + static_cast<long>(segment));
  observe();
}

void ListAllocator::unmap_whole_pages(std::size_t s) {
  Segment& segment = segments_[s];
  const Bytes page = page_of(segment);
  std::vector<Piece> pieces;
  Bytes offset = 0;
  bool unmapped = false;
  for (const Piece& piece : segment.pieces) {
    const Bytes first = (offset + page - 1) / page * page, last = (offset + piece.size) / page * page;
    const Bytes end = offset + piece.size;
    if (piece.state == State::free && first < last) {
      const long now = searches_[segment.small];
      if (first > offset) pieces.push_back({first - offset, 0, State::free, -1, now});
      pieces.push_back({last - first, 0, State::unmapped, -1, now});
      if (end > last) pieces.push_back({end - last, 0, State::free, -1, now});
      clock_ = std::max(clock_, idle_at_) + cost_.of_unmap((last - first) / page);
      ++statistics_.device_frees;
      unmapped = true;
    } else {
      pieces.push_back(piece);
    }
    offset = end;
  }
  segment.pieces = pieces;
  join(segment);
  if (unmapped && segment.pieces.size() == 1 && segment.pieces[0].state == State::unmapped)
    segments_.erase(segments_.begin() + static_cast<long>(s));
  observe();
}

Nanoseconds ListAllocator::empty_cache(Nanoseconds now, Nanoseconds idle_at) {
  clock_ = now, idle_at_ = idle_at;
  release_all();
  return clock_;
}

Bytes ListAllocator::reserved() const {
  Bytes sum = 0;
  for (const Segment& segment : segments_)
    for (const Piece& piece : segment.pieces) sum += piece.state == State::unmapped ? 0 : piece.size;
  return sum;
}

void ListAllocator::observe() {
  Bytes requested = 0, allocated = 0, active = 0, inactive = 0;
  for (const Segment& segment : segments_)
    for (const Piece& piece : segment.pieces) {
      if (piece.name >= 0) active += piece.size, requested += piece.requested;
      if (piece.name >= 0 && piece.state == State::held) allocated += piece.size;
      if (piece.state == State::free && segment.pieces.size() > 1 && !segment.expandable) inactive += piece.size;
    }
  const auto note = [](Gauge& gauge, Bytes value) { gauge.current = value, gauge.peak = std::max(gauge.peak, value); };
  note(statistics_.requested, requested), note(statistics_.allocated, allocated), note(statistics_.active, active);
  note(statistics_.reserved, reserved()), note(statistics_.inactive_split, inactive);
}

}  // namespace foreshard::sim::allocator
