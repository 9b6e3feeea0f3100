#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/abort_flag.hpp"
#include "comm/communicator.hpp"
#include "comm/mpi_call.hpp"
#include "comm/tally.hpp"

namespace foreshard::comm {

/// A group whose members exchange messages on an MPI communicator of their own, as across nodes. Gathers arrive where
/// they belong; reductions go through bounded scratch in chunks, every member sums its part with tree_sum, so the bits
/// are those of any other transport. Peers are addressed in an order that starts behind the own position, so that not
/// all send to one.
class MpiMessageGroup final : public Group {
 public:
  /// `comm` holds exactly the members, in order. No message is longer than `longest_message_bytes` (at least 8).
  MpiMessageGroup(MpiComm comm, const AbortFlag& abort, Tally& tally, std::int64_t longest_message_bytes);

  int size() const override { return size_; }
  int index() const override { return index_; }
  void all_gather(const void* shard, void* whole, std::int64_t count, DType dtype) override;
  void reduce_scatter(const void* whole, void* shard, std::int64_t count, SumTypes types, bool accumulate) override;
  void all_reduce(const void* x, void* sum, std::int64_t count, SumTypes types, bool accumulate) override;

 private:
  using Requests = std::vector<MPI_Request>;
  struct Scatter;
  struct Reduction;

  void send(Requests& requests, int peer, const std::byte* data, std::int64_t size_bytes) const;
  void receive(Requests& requests, int peer, std::byte* data, std::int64_t size_bytes) const;
  int peer(int step) const { return (index_ + step) % size_; }
  std::byte* scratch(int turn, int member);
  std::vector<const void*> parts(int turn, const std::byte* own);

  void start(const Scatter& scatter, std::int64_t at, std::int64_t count, int turn);
  void exchange_pieces(const Reduction& reduction, std::int64_t at, std::int64_t count);
  void reduce_own_part(const Reduction& reduction, std::int64_t at, std::int64_t count);
  void exchange_reduced(const Reduction& reduction, std::int64_t count);
  void collect_parts(const Reduction& reduction, std::int64_t at, std::int64_t count);

  MpiComm comm_;
  const AbortFlag& abort_;
  Tally& tally_;
  std::int64_t longest_message_bytes_;
  int size_, index_;
  std::int64_t piece_bytes_;
  std::vector<std::byte> scratch_;
  std::array<Requests, 2> requests_;
};

}  // namespace foreshard::comm
