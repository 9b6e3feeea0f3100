#pragma once
#include <array>
#include <set>
#include <string>

#include "plan/plan.hpp"
#include "sim/machine.hpp"
#include "sim/op_cost.hpp"
#include "sim/simulate.hpp"
#include "trace/memory.hpp"
#include "trace/tables.hpp"

namespace foreshard::sim {

/// What one rank's step will be.
struct Prediction {
  double step_time_s = 0;
  std::array<double, plan::lane_count> lane_busy_s{};
  double exposed_comm_s = 0;  ///< a communication lane busy, compute idle
  double model_flops = 0;     ///< of one step of one rank
  double tflops_per_device = 0;
  trace::Collectives collectives;  ///< of one step of one rank

  std::int64_t arena_bytes = 0, host_arena_bytes = 0;
  trace::MemoryPoint peak;  ///< live bytes when most of the arena is live
  plan::OpId peak_op;       ///< the compute op that runs then
  std::int64_t process_base_bytes = 0, rss_bytes = 0;

  Simulation simulation;
  std::set<std::string> sources;  ///< of the machine's numbers that were used
};

/// Ranks that a node carries unless the user says otherwise: as many as it has cores, or as many as calibration ran.
int ranks_per_node(const Machine& machine, int world_size);

/// Useful work of one step of one rank: (6·N + 12·layers·width·seq)·tokens, N the model's parameters, counted whole for
/// each token. Source: Chowdhery et al., "PaLM", 2022, appendix B, whose count of attention is not halved for the
/// causal mask.
double model_flops(const plan::Plan& plan);

/// Simulates one steady step of `plan` on `machine`.
Prediction predict(const plan::Plan& plan, const Machine& machine, const Layout& layout);

}  // namespace foreshard::sim
