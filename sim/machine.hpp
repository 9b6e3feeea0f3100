#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "model/operator.hpp"

namespace foreshard::sim {

using model::OpKind;
using model::Sizes;

/// A number and where it comes from: "measured …", "published …" or "assumed …".
struct Quantity {
  double value = 0;
  std::string source;
};

/// One measured execution of a kernel on one core, or on one GPU.
struct KernelPoint {
  Sizes sizes;
  double seconds = 0;
};

/// A kernel while `busy_cores` cores of the node run the same kernel, each on its own operands.
struct KernelTable {
  OpKind kind{};
  bool accumulate = false;
  int busy_cores = 1;
  std::vector<KernelPoint> points;  ///< at least one
  std::string source;
  DType dtype = DType::f32;  ///< as sim::type_of says it of an op
};

/// One measured collective: the size of the whole (unsharded) buffer, and the time until its last member has returned.
struct CollectivePoint {
  double bytes = 0, seconds = 0;
};

/// A collective among `ranks` ranks of one node, which share its cores; or among `ranks` GPUs, on equal parts of
/// `nodes` nodes.
struct CollectiveTable {
  OpKind kind{};
  int ranks = 1;
  std::vector<CollectivePoint> points;  ///< at least one, bytes increasing
  std::string source;
  int nodes = 1;
};

/// A GPU as calibration found it, what its kernels take apart. One rank has one.
struct MeasuredGpu {
  std::string name;          ///< as its driver prints it, e.g. "NVIDIA H200"
  std::string architecture;  ///< "sm_90"
  int multiprocessors = 1;
  int per_node = 1;                                     ///< ranks on a node when it was measured
  Quantity memory_bytes;                                ///< as its driver reports
  Quantity copy_bytes_per_s;                            ///< read and written, by the largest copy
  Quantity half_flops_per_s, f32_flops_per_s;           ///< of a large product in bf16, and in f32
  Quantity to_device_bytes_per_s, to_host_bytes_per_s;  ///< from and to pinned memory of the host
  Quantity launch_s;        ///< between two events around the smallest kernel, issued by itself: timed spans' floor
  Quantity graph_kernel_s;  ///< of one more of the smallest kernels in a replayed graph: no kernel takes less
  Quantity graph_launch_s;  ///< from the call to the end of a graph of one kernel
};

/// Everything the simulator knows of a machine. Seconds, bytes, cores.
struct Machine {
  std::string name;  ///< e.g. the processor's model name
  std::string date;  ///< when it was measured, ISO 8601; empty if it was not
  int cores = 1;     ///< of a node
  std::vector<KernelTable> kernels;
  std::vector<CollectiveTable> collectives;
  Quantity kernel_floor_s;        ///< no kernel takes less
  Quantity handover_next_s;       ///< from the end of an op to the start of the next on its lane
  Quantity handover_alone_s;      ///< the same where the rank has the node for itself
  Quantity handover_wake_s;       ///< from the end of an op to the start of one on another lane that waited for it
  Quantity team_efficiency;       ///< speed of a team of n threads, divided by n times the speed of one, for n = cores
  Quantity process_base_bytes;    ///< resident data of a rank besides its arena
  Quantity process_shared_bytes;  ///< resident programs and libraries, which the ranks of a node share
  Quantity network_latency_s;     ///< of a message to another node
  Quantity network_bytes_per_s;   ///< into a node, from others
  Quantity network_core_s_per_byte;  ///< of a core that compute loses by a byte its rank receives, its sends included
  Quantity network_beside_compute;   ///< rate of transfers while their rank computes, over their rate alone
  std::optional<MeasuredGpu> gpu;    ///< else it is of processor cores; its tables are then of kernels on the GPU
};

/// Without a file: rounded rates of one core of a current server processor; every number is marked "assumed".
Machine generic_machine(int cores);

/// Reads a machine file. Throws InputError (bad_input) that names the file, the key, the value seen and what was
/// expected. A kernel or collective that a file of processor cores lacks is taken from `generic_machine`, marked
/// "assumed"; one that a file of GPUs lacks is predicted by formula (gpu_op_cost.hpp). The keys are those of the
/// structures above; "device" is "cpu" (or absent) or "cuda", which has an object "gpu" (machine_gpu_json.hpp).
Machine read_machine(const std::string& path);
Machine parse_machine(const std::string& text, const std::string& path);

/// The text of a machine file that `read_machine` reads back.
std::string to_json(const Machine& machine);

}  // namespace foreshard::sim
