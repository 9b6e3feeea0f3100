#pragma once
#include <cstdint>
#include <memory>

namespace foreshard::sim::torch {

enum class StepPhase : std::uint8_t { forward, backward, update };

/// Bytes of all live tensor storages, and their largest sum since `restart`.
struct LiveBytes {
  std::int64_t now = 0, peak = 0;
  StepPhase phase = StepPhase::forward, peak_in = StepPhase::forward;

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

  void resize(std::int64_t bytes) {
    block_->live.change(bytes - block_->bytes);
    block_->bytes = bytes;
  }
  std::int64_t bytes() const { return block_->bytes; }
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
    explicit Block(LiveBytes& counter) : live(counter) {}
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block() { live.change(-bytes); }
  };
  std::shared_ptr<Block> block_;
  bool is_view_ = false;
};

}  // namespace foreshard::sim::torch
