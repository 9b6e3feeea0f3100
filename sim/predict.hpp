#pragma once
#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "sim/cluster.hpp"
#include "sim/flop_conventions.hpp"
#include "sim/machine.hpp"
#include "sim/op_cost.hpp"
#include "sim/simulate.hpp"
#include "trace/memory.hpp"
#include "trace/tables.hpp"

namespace foreshard::sim {

/// The GPU that a prediction is for, what counts of FLOPs are made from, and what of its memory the plan does not own.
struct OnGpu {
  std::string cluster, gpu, runtime;
  int gpus_per_node = 1;
  double peak_flops_per_s = 0;  ///< dense, of the type that the plan computes in
  std::int64_t memory_bytes = 0;
  double slowest_rank_factor = 1;  ///< of compute time, over the mean rank's
  FlopBasis flops;
  std::vector<std::string> hardware;  ///< its numbers, each with its source
};

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

  std::optional<OnGpu> gpu;
  /// On a GPU: arena, context and communicators are not more than its memory.
  bool fits() const { return !gpu || arena_bytes + process_base_bytes <= gpu->memory_bytes; }

  Simulation simulation;
  std::set<std::string> sources;  ///< of the machine's numbers that were used
};

/// Ranks that a node carries unless the user says otherwise: as many as it has cores, or as many as calibration ran.
int ranks_per_node(const Machine& machine, int world_size);

/// Useful work of one step of one rank: (6·N + 12·layers·width·seq)·tokens, N the model's parameters, counted whole for
/// each token, but without the gradients of those that are not trained, 2 each. Source: Chowdhery et al., "PaLM", 2022,
/// appendix B, whose count of attention is not halved for the causal mask. Of a model by its profile, what that says.
double model_flops(const plan::Plan& plan);

/// What a GPU's memory holds besides the plan's arena: a context, and a communicator for each kind of group with
/// several members: gather and reduce where parameters are sharded, replicate where there are replicas.
std::int64_t device_bytes_besides(const plan::Mesh& mesh);

/// Simulates one steady step of `plan` on `machine`.
Prediction predict(const plan::Plan& plan, const Machine& machine, const Layout& layout);

/// The same on a cluster of GPUs, by our runtime `foreshard-cuda`: a stream per lane, the step replayed as one graph.
/// All ranks compute as long as the slowest of them is expected to. The device's memory holds besides the arena a CUDA
/// context and a communicator for each kind of group that has several members: `process_base_bytes`.
Prediction predict_on_gpus(const plan::Plan& plan, const Cluster& cluster);

}  // namespace foreshard::sim
