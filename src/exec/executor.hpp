#pragma once
#include <cstdint>
#include <span>

#include "plan/plan.hpp"

namespace foreshard::exec {

/// Names an issued op: the `sequence`-th op on its lane since the executor began, counted from 1. 0 is "already done".
struct Ticket {
  plan::Lane lane = plan::Lane::compute;
  std::uint64_t sequence = 0;
};

/// One execution of an op: which micro-batch of the current step it belongs to (0 in the update).
struct Instance {
  const plan::Op* op = nullptr;
  int micro_batch = 0;
};

/// Carries ops out. Ops of one lane run in the order of issue, each after those it waits for; nothing else is promised.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Queues an op; may block while the lane's queue is full. `waits` are tickets of ops issued before.
  virtual Ticket issue(const Instance& instance, std::span<const Ticket> waits) = 0;

  /// Returns when everything issued has ended. Throws what an op threw.
  virtual void finish() = 0;
};

}  // namespace foreshard::exec
