#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "exec/executor.hpp"
#include "sim/fair_share.hpp"
#include "trace/recorder.hpp"

namespace foreshard::sim {

/// What an op needs of its node when nothing else runs there.
struct Demand {
  std::int64_t duration_ns = 1;  ///< with all its threads running; at least 1
  int threads = 1;
  double core = 1;            ///< part of a core that each of its threads keeps busy
  double link = 0;            ///< part of its node's share of the network that it fills
  double beside_compute = 1;  ///< its speed while the compute lane runs an op, at most
  double memory = 0;          ///< part of the device's memory bandwidth that it fills
  int held_sms = 0;           ///< SMs that its blocks keep while it runs, as collectives on GPUs do
  std::int64_t blocks = 0;    ///< that run in waves over the SMs which others do not hold; 0: SMs do not limit it
};
using Estimate = std::function<Demand(const plan::Op&)>;

/// Time that passes between an op's being free to start and its start. No core is busy in it.
struct Handover {
  std::int64_t next_ns = 0;  ///< the op before it on its lane ended last
  std::int64_t wake_ns = 0;  ///< an op of another lane ended last: a thread must be woken
};

/// Carries a plan out in virtual time, for one of many equal ranks.
///
/// An op starts when its lane is free and its waits are done, and ends when its work is done. The ops that run at one
/// time share `cores` fairly by thread, and the network fairly by op (fair_share.hpp): an op that needs part p > 0 and
/// may have level l runs at min(1, l / p) of its speed, by the scarcer of the two, and the rates change whenever the
/// set of running ops does. So T busy threads in all run at min(1, cores / T). `cores` is this rank's part of its node,
/// cores / ranks of the node: 0.5 means that every rank's every op has half a core when it runs alone in its rank. The
/// bandwidth of a device's memory is shared as the network is.
///
/// SMs are not shared but held: beside ops that hold h of the device's S, an op of b blocks takes
/// ⌈b / (S − h)⌉ / ⌈b / S⌉ times as long (cost/gpu_gemm.hpp).
///
/// Time is integer nanoseconds and work is fixed point, an advance rounds up and is at least 1 ns, ties break by lane:
/// the same input gives the same events, to the bit, on every machine.
class VirtualExecutor final : public exec::Executor {
 public:
  /// `plan` and `recorder` must outlive this.
  /// `sms` is the number of the device's SMs, 0 on processor cores.
  VirtualExecutor(const plan::Plan& plan, Estimate estimate, double cores, Handover handover, trace::Recorder& recorder,
                  int sms = 0);

  exec::Ticket issue(const exec::Instance& instance, std::span<const exec::Ticket> waits) override;

  /// Simulates what was issued since the last call, from `now_ns` on. A wait that can never be met is a broken
  /// contract.
  void finish() override;

  /// Virtual time: the end of all that was simulated.
  std::int64_t now_ns() const { return now_ns_; }

  /// The step number in the events that follow; 1 at first.
  void set_step(int step) { step_ = step; }

 private:
  struct Queued {
    exec::Instance instance;
    std::uint32_t first_wait = 0, wait_count = 0;
  };
  enum class State : std::uint8_t { idle, handover, running };
  struct LaneState {
    std::vector<Queued> queue;
    std::size_t head = 0;
    std::uint64_t issued = 0, completed = 0;  ///< since the beginning
    State state = State::idle;
    std::int64_t free_ns = 0;   ///< when its last op ended
    std::int64_t start_ns = 0;  ///< of the op in hand-over or running
    std::int64_t work = 0;      ///< left of the running op, in nanoseconds · 2^16
    std::int64_t speed = 0;     ///< of the running op, · 2^16
    Need core, link, memory;    ///< of the running op, · 2^16
    std::int64_t beside = 0;    ///< its highest speed beside compute, · 2^16
    std::int64_t held_sms = 0, blocks = 0;
  };

  bool is_done(const exec::Ticket& ticket) const;
  bool is_ready(const LaneState& lane) const;
  void admit();
  void begin(LaneState& lane);
  void run_from_now(LaneState& lane);
  std::int64_t level_of(std::int64_t capacity, Need LaneState::*need) const;
  std::int64_t held_sms() const;
  std::int64_t speed_beside(const LaneState& lane) const;
  std::int64_t wave_speed(const LaneState& lane, std::int64_t held) const;
  void set_speeds();
  std::int64_t time_to_next() const;
  void advance(std::int64_t delta_ns);
  void complete(plan::Lane name, LaneState& lane);
  bool has_work() const;

  const plan::Plan& plan_;
  Estimate estimate_;
  Handover handover_;
  trace::Recorder& recorder_;
  std::int64_t cores_;  ///< · 2^16
  std::int64_t sms_;
  std::int64_t now_ns_ = 0;
  int step_ = 1;
  std::array<LaneState, plan::lane_count> lanes_;
  std::vector<exec::Ticket> waits_;
};

}  // namespace foreshard::sim
