#pragma once
#include "engine/cuda/channel_calls.hpp"
#include "plan/plan.hpp"

namespace foreshard::engine::cuda {

/// The groups of a mesh, and its collectives on their channels.
class Collectives {
 public:
  /// Collective over all ranks. Throws LibraryError where they are not there by the deadline.
  Collectives(const plan::Mesh& mesh, comm::Communicator& ranks, comm::nccl::Deadline deadline);

  /// Queues one; `from` and `to` are the op's first operands. What is reduced may be overwritten: nothing reads an
  /// unsharded gradient after its reduction.
  void run(const plan::Op& op, const plan::Plan& plan, std::byte* from, std::byte* to, DeviceQueue queue);

  void expect_sound() const;  ///< throws LibraryError
  void abort() noexcept;      ///< all channels, before any is freed

 private:
  void split(const plan::Mesh& mesh, int rank, comm::nccl::Deadline deadline);
  const comm::nccl::Channel& channel_of(const plan::Op& op) const;

  comm::nccl::Channel world_, gather_, inner_, reduce_, replica_;
};

}  // namespace foreshard::engine::cuda
