#pragma once
#include "comm/nccl/channel.hpp"
#include "engine/cuda/memory.hpp"
#include "engine/cuda/stream.hpp"
#include "engine/cuda_meter.hpp"

namespace foreshard::engine::cuda {

/// Times the collectives of a channel, each behind a small one that lets the members begin together. Buffers are used
/// in turn, so that none stays warm in cache longer than in training.
class CollectiveTimes {
 public:
  CollectiveTimes(comm::Communicator& ranks, comm::nccl::Channel& channel, const Stream& stream,
                  std::int64_t largest_bytes);

  /// Collective over all ranks, whose channels have the same size. Aborts the channel where it fails: what was queued
  /// may never end otherwise, and memory is not freed before it has.
  std::vector<CudaCollective> all();

 private:
  std::vector<CudaCollective> measured();
  double seconds(model::OpKind kind, std::int64_t bytes);
  double call(model::OpKind kind, std::int64_t bytes);
  void queue(model::OpKind kind, std::byte* whole, std::int64_t count) const;
  void await() const;
  double slowest(double seconds) const;

  comm::Communicator& ranks_;
  comm::nccl::Channel& channel_;
  const Stream& stream_;
  std::int64_t largest_bytes_;
  DeviceMemory slots_, meeting_;
  Event begin_{Event::Kind::time}, end_{Event::Kind::time};
  std::int64_t turn_ = 0;
};

}  // namespace foreshard::engine::cuda
