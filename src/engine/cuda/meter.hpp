#pragma once
#include "comm/nccl/channel.hpp"
#include "engine/cuda/device.hpp"
#include "engine/cuda/stream.hpp"
#include "engine/cuda_meter.hpp"

namespace foreshard::engine::cuda {

/// Times by events on a stream of the rank's device.
class Meter final : public CudaMeter {
 public:
  explicit Meter(comm::Communicator& ranks);
  CudaDevice device(const CudaTrial& trial) override;
  std::vector<CudaCollective> collectives(std::span<const int> members, std::int64_t largest_bytes) override;

 private:
  comm::Communicator& ranks_;
  Device device_;
  Stream stream_{Stream::Priority::normal};
  comm::nccl::Channel world_;
};

}  // namespace foreshard::engine::cuda
