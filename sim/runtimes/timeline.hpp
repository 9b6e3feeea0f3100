#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

namespace foreshard::sim::torch {

/// The streams of a GPU that FSDP issues work to.
enum class Stream : std::uint8_t {
  compute,      ///< the default one
  pre_unshard,  ///< casts (FSDP1), copies into a gather's input (FSDP2)
  unshard,      ///< all-gathers
  reduce,       ///< reduce-scatters, and what is around them
  replicate     ///< all-reduces over replicas, and what follows them
};
constexpr std::size_t stream_count = 5;

/// A process group's communicator: it runs one collective at a time, in the order of issue, whichever stream asks.
enum class Communicator : std::uint8_t { shard, replica };
constexpr std::size_t communicator_count = 2;

using Nanoseconds = std::int64_t;

/// From when to when something ran.
struct Span {
  Nanoseconds start = 0, end = 0;
};

/// One rank in virtual time, seen in the order in which its host issues work: the host's clock, and when each stream
/// and communicator will be free. What is issued later never delays what was issued before, so each start is known at
/// once.
class Timeline {
 public:
  Nanoseconds host() const { return host_; }
  /// When all that was issued to a stream has ended: an event recorded on it now.
  Nanoseconds end_of(Stream stream) const { return streams_[at(stream)]; }
  Nanoseconds end_of(Communicator communicator) const { return communicators_[at(communicator)]; }
  Nanoseconds end_of_all() const { return *std::ranges::max_element(streams_); }

  void host_works(Nanoseconds duration) { host_ += duration; }
  /// The host goes on when `event` has passed. Returns for how long it stood still.
  Nanoseconds block(Nanoseconds event) {
    const Nanoseconds before = host_;
    host_ = std::max(host_, event);
    return host_ - before;
  }

  /// What is issued to `stream` from now on starts after `event`.
  void wait(Stream stream, Nanoseconds event) { streams_[at(stream)] = std::max(end_of(stream), event); }
  void wait(Stream stream, Stream other) { wait(stream, end_of(other)); }

  /// A stream's queue holds so many launches that have not begun; the next one waits for room before it is issued.
  /// Source: measured, some 1000 kernels of each stream (stackoverflow.com/questions/53970187).
  static constexpr std::size_t launch_queue = 1024;
  Nanoseconds room_in(Stream stream) const { return begun_[at(stream)][launches_[at(stream)] % launch_queue]; }

  /// When something that is issued now would start.
  Nanoseconds next_start(Stream stream) const { return std::max(host_, end_of(stream)); }
  Span run(Stream stream, Nanoseconds duration) {
    const Nanoseconds start = next_start(stream);
    begun_[at(stream)][launches_[at(stream)]++ % launch_queue] = start;
    return {start, streams_[at(stream)] = start + duration};
  }
  /// A collective: its stream waits for it.
  Span run(Stream stream, Communicator communicator, Nanoseconds duration) {
    Nanoseconds& free = communicators_[at(communicator)];
    wait(stream, free);
    const Span span = run(stream, duration);
    free = span.end;
    return span;
  }

 private:
  static std::size_t at(auto name) { return static_cast<std::size_t>(name); }

  Nanoseconds host_ = 0;
  std::array<Nanoseconds, stream_count> streams_{};
  std::array<Nanoseconds, communicator_count> communicators_{};
  std::array<std::array<Nanoseconds, launch_queue>, stream_count> begun_{};  ///< the last launches of each
  std::array<std::size_t, stream_count> launches_{};
};

}  // namespace foreshard::sim::torch
