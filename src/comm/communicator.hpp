#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"

namespace foreshard::comm {

/// What one rank's collectives moved, counted where it happens.
struct Count {
  std::uint64_t calls = 0;
  std::uint64_t payload_bytes = 0;   ///< size of the whole (unsharded) buffer, summed over calls
  std::uint64_t received_bytes = 0;  ///< bytes that came from other ranks
};
struct Counters {
  Count all_gather, reduce_scatter, all_reduce;
};

/// What a reduction sums, which is what travels, and what it leaves. From bf16 or f16 it may leave f32, and from f32
/// either of these: sums are made in f32 and rounded once, at the end. Otherwise both are the same type, and a single
/// DType says so.
struct SumTypes {
  DType from, to;
  SumTypes(DType both) : from(both), to(both) {}
  SumTypes(DType summed, DType result) : from(summed), to(result) {}
  bool operator==(const SumTypes&) const = default;
};

/// Ranks that act together on one ordered channel. Each group has its own order; different groups never block each
/// other, so each may be driven by its own thread. All calls are collective over the members, blocking, and in the same
/// order everywhere. A call returns when every member has finished reading this rank's bytes: then, and only then, its
/// buffers may be reused.
///
/// Buffers lie in the arenas of `Communicator::arena`, at the same offset on every rank. Reductions add in fp32 (f64
/// for f64, integers exactly) along one canonical pairwise tree over the members' positions, ((0+1)+(2+3))+…, whatever
/// the transport.
class Group {
 public:
  virtual ~Group() = default;
  virtual int size() const = 0;
  virtual int index() const = 0;  ///< position of this rank

  /// whole[i·count, (i+1)·count) = member i's shard. `shard` may be this rank's own part of `whole`.
  virtual void all_gather(const void* shard, void* whole, std::int64_t count, DType dtype) = 0;

  /// shard = (accumulate ? shard : 0) + Σ over members of their whole[index·count, (index+1)·count).
  virtual void reduce_scatter(const void* whole, void* shard, std::int64_t count, SumTypes types, bool accumulate) = 0;

  /// sum = (accumulate ? sum : 0) + Σ over members of their x[0, count). `sum` and `x` do not overlap, unless equal, of
  /// one type and not accumulating. Reduced parts travel in the type of the result, or in that of the sums where they
  /// are accumulated.
  virtual void all_reduce(const void* x, void* sum, std::int64_t count, SumTypes types, bool accumulate) = 0;
};

/// A rank's connection to the others of the run.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int node_rank() const = 0;  ///< position among the ranks of this node
  virtual int node_size() const = 0;  ///< ranks on this node
  virtual std::string_view transport()
      const = 0;  ///< e.g. "threads", "mpi shared memory", "mpi messages (no shared memory: …)"

  /// Collective, once: zeroed memory of `size_bytes` (the same on all ranks), 4096-aligned, that peers may read. Owned
  /// by the communicator. Pages are not touched, so they count as used only when an op writes them.
  virtual std::span<std::byte> arena(std::int64_t size_bytes) = 0;

  /// Collective, once: `size_bytes` (a few pages) of zeroed memory of each rank of this node, by node rank, which all
  /// of them may read at any time, also while its owner is stopped. Where the node's memory cannot be shared, only the
  /// own part is there and the others are empty. Owned by the communicator.
  virtual std::vector<std::span<std::byte>> notice_board(std::int64_t size_bytes) = 0;

  /// Collective over all ranks: this rank's group of `members` (world ranks in order; contains this rank). After
  /// `arena`.
  virtual std::unique_ptr<Group> group(std::span<const int> members) = 0;

  // Host data, outside the step; collective over all ranks; blocking; any memory.
  virtual void barrier() = 0;
  virtual void broadcast(std::span<std::byte> data, int root) = 0;
  /// On rank 0 the bytes of every rank, by rank; elsewhere empty. Sizes may differ.
  virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> data) = 0;
  virtual std::vector<std::uint64_t> all_gather_u64(std::uint64_t value) = 0;

  virtual Counters counters() const = 0;

  /// Throws LibraryError, naming `call`, if a rank of this node has ended the run; for what waits elsewhere than here.
  virtual void expect_running(std::string_view call) const = 0;

  /// Ends all ranks, quickly: blocked calls of local ranks throw, an MPI job is aborted with `exit_code`.
  virtual void abort(int exit_code) noexcept = 0;
};

/// Connections of `size` ranks that are threads of this process. Give one to each thread; destroy them after all have
/// ended.
std::vector<std::unique_ptr<Communicator>> make_local(int size);

}  // namespace foreshard::comm
