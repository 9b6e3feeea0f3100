#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "model/operator.hpp"

namespace foreshard::engine {

/// A rank's CUDA device, and the rates of what is simplest on it. Seconds, bytes, FLOP/s.
struct CudaDevice {
  std::string name, architecture;  ///< "NVIDIA H200", "sm_90"
  int multiprocessors = 1;
  int visible = 1;  ///< devices that this rank sees
  std::int64_t memory_bytes = 0;
  double copy_bytes_per_s = 0;                                ///< inside the device, read and written together
  double half_flops_per_s = 0, f32_flops_per_s = 0;           ///< of a square product in bf16, in f32
  double to_device_bytes_per_s = 0, to_host_bytes_per_s = 0;  ///< from and to pinned memory
  double launch_s = 0;        ///< between events around the smallest kernel, issued to an idle device
  double graph_kernel_s = 0;  ///< of one more of the smallest kernels in a graph
  double graph_launch_s = 0;  ///< from the launch of a graph of one kernel until the host sees its end
};

/// How large the operands are that rates are measured with.
struct CudaTrial {
  std::int64_t copy_bytes = std::int64_t{1} << 30;
  std::int64_t product_side = 8192;  ///< of bf16; a half of it for f32
  int repeats = 15;
};

/// What one collective of NCCL took, of the slowest rank; `bytes` of the whole buffer.
struct CudaCollective {
  model::OpKind kind{};
  std::int64_t bytes = 0;
  double seconds = 0;
};

/// Measures one CUDA device for each rank, and NCCL between them.
class CudaMeter {
 public:
  virtual ~CudaMeter() = default;

  virtual CudaDevice device(const CudaTrial& trial) = 0;

  /// Collective over all ranks: the three collectives among this rank's `members` (world ranks in order, at least two),
  /// while the others do the same among theirs; whole buffers of 256 bytes a member, four times as many, and so on, up
  /// to `largest_bytes`.
  virtual std::vector<CudaCollective> collectives(std::span<const int> members, std::int64_t largest_bytes) = 0;
};

/// Collective: takes a device for each rank, as the engine does, and connects them. Loads the module that
/// `cuda_engine.hpp` speaks of; throws InputError where it or a device is missing. The communicator outlives the meter.
std::unique_ptr<CudaMeter> make_cuda_meter(comm::Communicator& ranks);

/// What the module gives: `extern "C"` under the name `foreshard_make_cuda_meter`.
using MakeCudaMeter = CudaMeter*(comm::Communicator&);

}  // namespace foreshard::engine
