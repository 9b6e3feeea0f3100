#pragma once
#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/dtype.hpp"
#include "comm/communicator.hpp"

/// Collectives of NCCL. Every rank queues those of all its channels in one order, which is the plan's: NCCL needs the
/// same order everywhere. MPI (`comm::Communicator`) carries only host data meanwhile.
namespace foreshard::comm::nccl {

using Deadline = std::chrono::steady_clock::time_point;

/// A channel of some ranks; empty where this rank is alone in it. Calls queue on a stream and return at once; buffers
/// are of device memory and must stay until the stream is done. Throws LibraryError.
class Channel {
 public:
  Channel() = default;
  Channel(ncclComm_t comm, int size, int index) : comm_(comm), size_(size), index_(index) {}
  Channel(Channel&& other) noexcept { swap(other); }
  Channel& operator=(Channel&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Channel();  ///< all that was queued has ended, or the channel was aborted

  int size() const { return size_; }
  int index() const { return index_; }  ///< position of this rank
  ncclComm_t comm() const { return comm_; }

  /// whole[i·count, (i + 1)·count) = member i's shard, which may be its part of `whole`.
  void all_gather(const void* shard, void* whole, std::int64_t count, DType dtype, cudaStream_t stream) const;
  /// shard = Σ over members of their part `index` of `whole`; it may be that part.
  void reduce_scatter(const void* whole, void* shard, std::int64_t count, DType dtype, cudaStream_t stream) const;
  /// sum = Σ over members of their x; it may be x.
  void all_reduce(const void* x, void* sum, std::int64_t count, DType dtype, cudaStream_t stream) const;

  /// Throws LibraryError if something queued before has failed on this rank or on another that said so.
  void expect_sound() const;
  /// Nothing queued here runs any longer. May block where a driver does.
  void abort() noexcept;

 private:
  void swap(Channel& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(size_, other.size_);
    std::swap(index_, other.index_);
  }

  ncclComm_t comm_ = nullptr;
  int size_ = 1, index_ = 0;
};

/// Collective over all ranks: their channel. Rank 0 makes NCCL's id, which travels as host data. Throws LibraryError
/// where it is not there by the deadline. The current device is this rank's.
Channel connect(Communicator& ranks, Deadline deadline);

/// Collective over all ranks: the channel of `members` (world ranks in order; contains `rank`), split from `world`.
/// Every rank's group has the same size.
Channel split(const Channel& world, std::span<const int> members, int rank, Deadline deadline);

/// "NCCL 2.28.9"
std::string version();

}  // namespace foreshard::comm::nccl
