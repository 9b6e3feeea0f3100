#pragma once
#include <cstdint>
#include <memory>

#include "sim/runtimes/timeline.hpp"

namespace foreshard::sim::torch {

enum class StepPhase : std::uint8_t { forward, backward, update };

/// Streams and communicators that a storage was recorded on, beside the stream that it was allocated on.
class Recorded {
 public:
  void add(Stream stream) { bits_ |= 1u << static_cast<unsigned>(stream); }
  void add(Communicator communicator) { bits_ |= 1u << (stream_count + static_cast<unsigned>(communicator)); }
  bool none() const { return bits_ == 0; }
  bool has(Stream stream) const { return (bits_ >> static_cast<unsigned>(stream)) & 1; }
  bool has(Communicator communicator) const {
    return (bits_ >> (stream_count + static_cast<unsigned>(communicator))) & 1;
  }

 private:
  unsigned bits_ = 0;
};

/// Where storages lie on a device, if that is of interest.
class Place {
 public:
  virtual ~Place() = default;
  /// A block for `bytes` > 0 that the current stream owns.
  virtual void* allocate(std::int64_t bytes) = 0;
  virtual void free(void* block, Recorded recorded) = 0;
};

/// Bytes of all live tensor storages, and their largest sum since `restart`.
struct LiveBytes {
  std::int64_t now = 0, peak = 0;
  StepPhase phase = StepPhase::forward, peak_in = StepPhase::forward;
  Place* place = nullptr;  ///< may be none

  void restart() { peak = now, phase = peak_in = StepPhase::forward; }
  void change(std::int64_t bytes) {
    now += bytes;
    if (now > peak) peak = now, peak_in = phase;
  }
};

/// A tensor's memory, shared by all that refer to it as in PyTorch: it dies with the last reference, or shrinks to
/// nothing by `resize`. An empty handle is an undefined tensor. The counter must outlive all storages.
class Storage {
 public:
  Storage() = default;
  Storage(LiveBytes& live, std::int64_t bytes) : block_(std::make_shared<Block>(live)) { resize(bytes); }

  void resize(std::int64_t bytes) { block_->resize(bytes); }
  std::int64_t bytes() const { return block_->bytes; }
  /// The memory may not be reused before what is issued to `user` by the time of its death is done (`record_stream`).
  void record(auto user) const { block_->recorded.add(user); }
  /// The same memory as a transposed view, as a linear operator gives its weight's gradient.
  Storage transposed() const {
    Storage view = *this;
    view.is_view_ = true;
    return view;
  }
  /// Autograd adds in place to what nobody else refers to, and not to views.
  bool may_be_added_to() const { return !is_view_ && block_.use_count() == 1; }
  explicit operator bool() const { return block_ != nullptr; }

 private:
  struct Block {
    LiveBytes& live;
    std::int64_t bytes = 0;
    void* place = nullptr;
    Recorded recorded;

    explicit Block(LiveBytes& counter) : live(counter) {}
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block() { resize(0); }

    /// What was there does not move along: none of PyTorch's FSDP resizes but from or to nothing.
    void resize(std::int64_t size) {
      if (size == bytes) return;
      if (live.place && bytes > 0) live.place->free(place, recorded);
      recorded = {};
      live.change(-bytes), bytes = 0;
      if (live.place && size > 0) place = live.place->allocate(size);
      live.change(size), bytes = size;
    }
  };
  std::shared_ptr<Block> block_;
  bool is_view_ = false;
};

}  // namespace foreshard::sim::torch
