#include "sim/simulate.hpp"

#include <algorithm>

#include "exec/run_plan.hpp"

namespace foreshard::sim {
namespace {

using trace::Event;

constexpr int first_try = 6;  ///< micro-batches: first, four that may repeat, last

Simulation run(const plan::Plan& plan, const Estimate& estimate, double cores, Handover handover, int sms) {
  trace::Recorder recorder;
  VirtualExecutor executor(plan, estimate, cores, handover, recorder, sms);
  exec::run_plan(plan, executor);
  return {.events = recorder.take(), .step_ns = executor.now_ns()};
}

std::vector<Event> of_micro_batch(const std::vector<Event>& events, int micro_batch) {
  std::vector<Event> found;
  std::copy_if(events.begin(), events.end(), std::back_inserter(found),
               [=](const Event& event) { return event.micro_batch == micro_batch; });
  return found;
}

/// Both hold the events of the same segment, lane by lane. True if one is the other, `shift_ns` later.
bool repeats(const std::vector<Event>& before, const std::vector<Event>& after, std::int64_t& shift_ns) {
  shift_ns = after.front().start_ns - before.front().start_ns;
  return std::equal(before.begin(), before.end(), after.begin(), after.end(), [&](const Event& a, const Event& b) {
    return a.op == b.op && a.duration_ns == b.duration_ns && a.start_ns + shift_ns == b.start_ns;
  });
}

Event moved(Event event, int micro_batches, std::int64_t delay_ns) {
  event.micro_batch += micro_batches;
  event.start_ns += delay_ns;
  return event;
}

/// Stretches the simulation of a step of `simulated` micro-batches to `wanted`, if its last two middle ones are equal.
bool stretch(Simulation& simulation, int simulated, int wanted) {
  const int last_middle = simulated - 2;
  if (!repeats(of_micro_batch(simulation.events, last_middle - 1), of_micro_batch(simulation.events, last_middle),
               simulation.period_ns))
    return false;
  simulation.repeated = last_middle;
  simulation.copies = wanted - simulated;
  simulation.step_ns += simulation.copies * simulation.period_ns;
  return true;
}

}  // namespace

Simulation simulate_step(const plan::Plan& plan, const Estimate& estimate, double cores, Handover handover, int sms) {
  const int wanted = plan.micro_batches;
  if (wanted <= first_try) return run(plan, estimate, cores, handover, sms);
  plan::Plan shorter = plan;
  for (shorter.micro_batches = first_try; shorter.micro_batches < wanted; shorter.micro_batches *= 2) {
    Simulation simulation = run(shorter, estimate, cores, handover, sms);
    if (stretch(simulation, shorter.micro_batches, wanted)) return simulation;
  }
  return run(plan, estimate, cores, handover, sms);
}

std::vector<Event> expanded(const plan::Plan& plan, const Simulation& simulation, int copies) {
  std::vector<Event> all;
  for (const Event& event : simulation.events) {
    const bool behind = event.micro_batch > simulation.repeated;
    all.push_back(behind ? moved(event, copies, copies * simulation.period_ns) : event);
    if (event.micro_batch == simulation.repeated)
      for (int i = 1; i <= copies; ++i) all.push_back(moved(event, i, i * simulation.period_ns));
  }
  std::stable_sort(all.begin(), all.end(), [&](const Event& a, const Event& b) {
    return std::pair(plan.ops[a.op].lane, a.start_ns) < std::pair(plan.ops[b.op].lane, b.start_ns);
  });
  return all;
}

}  // namespace foreshard::sim
