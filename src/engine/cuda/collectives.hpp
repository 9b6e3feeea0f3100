#pragma once
#include "comm/nccl/channel.hpp"
#include "engine/arena.hpp"
#include "engine/cuda/stream.hpp"
#include "kernels/cuda/backend.hpp"
#include "plan/plan.hpp"

namespace foreshard::engine::cuda {

/// The groups of a mesh, and its collectives on their channels. Reductions sum in the type that travels; what is to be
/// added to, or left in another type, is then cast by a kernel behind.
class Collectives {
 public:
  /// Collective over all ranks.
  Collectives(const plan::Mesh& mesh, comm::Communicator& ranks, comm::nccl::Deadline deadline);

  struct Queue {
    const Stream& stream;
    kernels::cuda::Kernels& kernels;  ///< of that stream
  };
  /// Queues one; `from` and `to` are the op's first operands. What is reduced may be overwritten: nothing reads an
  /// unsharded gradient after its reduction.
  void run(const plan::Op& op, const plan::Plan& plan, std::byte* from, std::byte* to, Queue queue);

  void expect_sound() const;  ///< throws LibraryError
  void abort() noexcept;      ///< all channels, before any is freed

 private:
  void all_gather(const comm::nccl::Channel& channel, std::int64_t count, DType dtype, std::byte* from, std::byte* to,
                  Queue queue);
  struct Sum {
    std::int64_t count = 0;  ///< elements that stay on this rank
    DType travels = DType::f32, stays = DType::f32;
    bool accumulate = false;
    bool direct() const { return travels == stays && !accumulate; }
  };
  void reduce_scatter(const comm::nccl::Channel& channel, const Sum& sum, std::byte* from, std::byte* to, Queue queue);
  void all_reduce(const comm::nccl::Channel& channel, const Sum& sum, std::byte* from, std::byte* to, Queue queue);
  const comm::nccl::Channel& channel_of(const plan::Op& op) const;

  comm::nccl::Channel world_, gather_, inner_, reduce_, replica_;
};

}  // namespace foreshard::engine::cuda
