#include "engine/cuda/meter.hpp"

#include "engine/cuda/collective_times.hpp"
#include "engine/cuda/device_rates.hpp"

namespace foreshard::engine::cuda {
namespace {

comm::nccl::Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::minutes(2); }

}  // namespace

Meter::Meter(comm::Communicator& ranks)
    : ranks_(ranks), device_(choose_device(ranks)), world_(comm::nccl::connect(ranks, soon())) {}

CudaDevice Meter::device(const CudaTrial& trial) { return measured_device(device_, trial, stream_); }

std::vector<CudaCollective> Meter::collectives(std::span<const int> members, std::int64_t largest_bytes) {
  comm::nccl::Channel channel = comm::nccl::split(world_, members, ranks_.rank(), soon());
  return CollectiveTimes(ranks_, channel, stream_, largest_bytes).all();
}

}  // namespace foreshard::engine::cuda
