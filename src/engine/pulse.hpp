#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "comm/communicator.hpp"
#include "plan/op.hpp"

namespace foreshard::engine {

/// What a rank is doing, in words that the other ranks of its node read without its help. Zeroed memory is a rank that
/// has not begun. Each word has one writer; nothing is ordered by them, so they are all relaxed.
class Pulse {
 public:
  /// Says who this is, before others look.
  void introduce(int rank);

  // By the thread that issues steps.
  void begin_step(std::int64_t step) {
    set(step_, step);
    set(running_, std::int64_t{1});
  }
  void end_step() { set(running_, std::int64_t{0}); }

  // By a lane's thread: its `sequence`-th op (from 1) is `op` of the plan.
  void enter(plan::Lane lane, std::uint64_t sequence, std::uint32_t op, int micro_batch) {
    LanePulse& pulse = lanes_[static_cast<std::size_t>(lane)];
    set(pulse.op, std::uint64_t{op} << 32 | static_cast<std::uint32_t>(micro_batch));
    set(pulse.entered, sequence);
  }
  void leave(plan::Lane lane, std::uint64_t sequence) { set(lanes_[static_cast<std::size_t>(lane)].ended, sequence); }

  /// While one exists, the issuing thread does something outside of steps that may take long: writing a checkpoint.
  class LongPause {
   public:
    explicit LongPause(Pulse& pulse) : pulse_(pulse) { set(pulse_.pausing_, std::int64_t{1}); }
    ~LongPause() { set(pulse_.pausing_, std::int64_t{0}); }
    LongPause(const LongPause&) = delete;
    LongPause& operator=(const LongPause&) = delete;

   private:
    Pulse& pulse_;
  };

  /// By the watchdog: its process is alive.
  void beat() { beats_.fetch_add(1, std::memory_order_relaxed); }

 private:
  friend struct Sighting;
  struct alignas(64) LanePulse {  // a cache line each: lanes are threads
    std::atomic<std::uint64_t> entered{0}, ended{0}, op{0};
  };
  template <class T>
  static void set(std::atomic<T>& word, T value) {
    word.store(value, std::memory_order_relaxed);
  }

  std::atomic<std::int64_t> rank_{0}, process_{0}, step_{0}, running_{0}, pausing_{0};
  std::array<LanePulse, plan::lane_count> lanes_;
  alignas(64) std::atomic<std::uint64_t> beats_{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "pulses are read by other processes");

/// A pulse as it was at one moment.
struct Sighting {
  struct LaneSighting {
    std::uint64_t entered = 0, ended = 0;  ///< ops since the executor began
    std::uint32_t op = 0;                  ///< the one entered last
    int micro_batch = 0;
    bool busy() const { return entered > ended; }
    friend bool operator==(const LaneSighting&, const LaneSighting&) = default;
  };
  int rank = 0;
  std::int64_t process = 0;
  std::int64_t step = 0;  ///< 0: an evaluation
  bool running = false;   ///< a step has begun and not ended
  bool pausing = false;   ///< in a long pause between steps
  std::array<LaneSighting, plan::lane_count> lanes;
  std::uint64_t beats = 0;

  Sighting() = default;
  explicit Sighting(const Pulse& pulse);

  std::uint64_t ops_ended() const;
  /// Whether nothing but beats lies between the two.
  bool same_work(const Sighting& other) const {
    return step == other.step && running == other.running && pausing == other.pausing && lanes == other.lanes;
  }
};

/// The pulses of the ranks of this node.
class PulseBoard {
 public:
  /// Collective. The communicator outlives the board.
  explicit PulseBoard(comm::Communicator& communicator);

  Pulse& own() { return *own_; }
  /// Those that this rank can see, its own included, in order of node rank.
  std::vector<Sighting> look() const;
  bool sees_whole_world() const { return pulses_.size() == world_size_; }

 private:
  std::vector<Pulse*> pulses_;
  Pulse* own_ = nullptr;
  std::size_t world_size_;
};

}  // namespace foreshard::engine
