#pragma once
#include <cstdint>
#include <vector>

#include "sim/virtual_executor.hpp"

namespace foreshard::sim {

/// One optimizer step in virtual time, from 0 on. Micro-batches are simulated until one repeats the one before; then
/// that one stands for `copies` more behind it, each `period_ns` later, which are not in `events`.
struct Simulation {
  std::vector<trace::Event> events;  ///< lane by lane
  std::int64_t step_ns = 0;
  int repeated = 0;  ///< the micro-batch that repeats
  int copies = 0;
  std::int64_t period_ns = 0;
};

/// Simulates one step by `exec::run_plan`. Its cost does not grow with the number of micro-batches.
Simulation simulate_step(const plan::Plan& plan, const Estimate& estimate, double cores, Handover handover,
                         int sms = 0);

/// All events of the step, with `copies` copies of the repeated micro-batch written out, each lane in order of start.
std::vector<trace::Event> expanded(const plan::Plan& plan, const Simulation& simulation, int copies);

}  // namespace foreshard::sim
