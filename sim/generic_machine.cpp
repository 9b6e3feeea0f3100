#include <array>

#include "sim/machine.hpp"

namespace foreshard::sim {
namespace {

constexpr const char* assumed = "assumed: rounded rate of one core of a current server processor";

/// Seconds of a kernel at one size, from which its rate at all sizes is taken.
struct Assumption {
  OpKind kind;
  Sizes sizes;
  double seconds;
};

constexpr Sizes matrix{.rows = 1024, .cols = 1024, .inner = 1024};
constexpr Sizes sequences{.inner = 64, .batch = 1, .seq = 1024, .heads = 12};
constexpr Sizes activation{.rows = 1024, .cols = 1024};
constexpr Sizes flat{.rows = 1 << 20};
constexpr Sizes table{.rows = 1024, .cols = 1024, .inner = 1024};

constexpr double gemm_s = 2.147e-2;  // 100 GFLOP/s
constexpr std::array assumptions{
    Assumption{OpKind::linear, matrix, gemm_s},
    Assumption{OpKind::linear_input_grad, matrix, gemm_s},
    Assumption{OpKind::linear_weight_grad, matrix, gemm_s},
    Assumption{OpKind::linear_bias_grad, activation, 0.3e-3},
    Assumption{OpKind::attention, sequences, 3.0e-2},
    Assumption{OpKind::attention_backward, sequences, 8.0e-2},
    Assumption{OpKind::embedding, table, 0.8e-3},
    Assumption{OpKind::embedding_backward, table, 1.0e-3},
    Assumption{OpKind::layer_norm, activation, 0.6e-3},
    Assumption{OpKind::layer_norm_backward, activation, 1.2e-3},
    Assumption{OpKind::add_layer_norm, activation, 1.0e-3},
    Assumption{OpKind::rms_norm, activation, 0.5e-3},
    Assumption{OpKind::rms_norm_backward, activation, 1.0e-3},
    Assumption{OpKind::add_rms_norm, activation, 0.9e-3},
    Assumption{OpKind::rotary, activation, 0.5e-3},
    Assumption{OpKind::rotary_backward, activation, 0.5e-3},
    Assumption{OpKind::swiglu, activation, 1.3e-3},
    Assumption{OpKind::swiglu_backward, activation, 2.4e-3},
    Assumption{OpKind::gelu, activation, 1.2e-3},
    Assumption{OpKind::gelu_backward, activation, 1.8e-3},
    Assumption{OpKind::gelu_exact, activation, 1.2e-3},
    Assumption{OpKind::gelu_exact_backward, activation, 1.8e-3},
    Assumption{OpKind::add, activation, 0.5e-3},
    Assumption{OpKind::dropout, activation, 2.5e-3},
    Assumption{OpKind::cross_entropy, activation, 1.0e-3},
    Assumption{OpKind::cross_entropy_backward, activation, 1.2e-3},
    Assumption{OpKind::load_batch, flat, 1.0e-3},
    Assumption{OpKind::zero_fill, flat, 0.2e-3},
    Assumption{OpKind::cast, activation, 0.3e-3},
    Assumption{OpKind::cast_shard, flat, 0.3e-3},
    Assumption{OpKind::retain, flat, 0.4e-3},
    Assumption{OpKind::fetch, flat, 0.4e-3},  // 10 GB/s between host and device
    Assumption{OpKind::offload, flat, 0.4e-3},
    Assumption{OpKind::grad_norm, flat, 0.6e-3},
    Assumption{OpKind::adamw, flat, 1.5e-3},
};

/// Bytes of the whole buffer and the time for them, between `ranks` ranks through shared memory.
CollectiveTable shared_memory(OpKind kind, int ranks, double seconds_per_byte) {
  return {kind, ranks, {{1024, 2e-6 * ranks}, {1 << 26, (1 << 26) * seconds_per_byte * ranks / 2}}, assumed};
}

Quantity assume(double value, const char* why) { return {value, std::string("assumed: ") + why}; }

}  // namespace

Machine generic_machine(int cores) {
  Machine machine;
  machine.name = "generic";
  machine.cores = cores;
  for (const Assumption& a : assumptions)
    machine.kernels.push_back({a.kind, false, 1, {{a.sizes, a.seconds}}, assumed});
  for (const OpKind kind : {OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_reduce})
    for (const int ranks : {1, 2}) machine.collectives.push_back(shared_memory(kind, ranks, 1.2e-10));
  machine.kernel_floor_s = assume(1e-6, "a call and a parallel region");
  machine.handover_next_s = assume(1e-6, "a queue between threads");
  machine.handover_alone_s = machine.handover_next_s;
  machine.handover_wake_s = assume(1e-5, "waking a thread");
  machine.team_efficiency = assume(0.95, "kernels scale well over few cores");
  machine.process_base_bytes = assume(40e6, "data of an MPI process");
  machine.process_shared_bytes = assume(60e6, "libraries of an MPI process");
  machine.network_latency_s = assume(5e-6, "an InfiniBand-class network");
  machine.network_bytes_per_s = assume(12.5e9, "100 Gbit/s into a node");
  machine.network_core_s_per_byte = assume(0, "the network card moves the bytes");
  machine.network_beside_compute = assume(1, "the network card moves the bytes");
  return machine;
}

}  // namespace foreshard::sim
