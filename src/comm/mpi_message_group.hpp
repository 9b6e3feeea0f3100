#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/abort_flag.hpp"
#include "comm/communicator.hpp"
#include "comm/mpi_call.hpp"
#include "comm/split.hpp"
#include "comm/tally.hpp"

namespace foreshard::comm {

/// A group whose members exchange messages on an MPI communicator of their own, as across nodes. Gathers arrive where
/// they belong; reductions go through bounded scratch, every member sums its part with tree_sum, so the bits are those
/// of any other transport. Peers are addressed in an order that starts behind the own position, so that not all send to
/// one.
///
/// Everything travels in pieces, of which a member lets only `turns` come from a peer at a time. MPI answers the
/// announcement of a long message on the connection that carries the data of the other direction: with one long message
/// each way, the rank that comes later gets its answer only behind all of the other's data, and the two directions run
/// one after the other. (Measured over TCP at 4 Gbit/s, 8 MiB each way: 33 ms whole, 23 ms in four pieces of 256 KiB at
/// a time, 18.5 ms with what mpi_session.cpp asks of Open MPI besides; the wire takes 17.)
class MpiMessageGroup final : public Group {
 public:
  static constexpr int turns = 4;

  /// `comm` holds exactly the members, in order. No message is longer than `longest_message_bytes` (at least 8).
  MpiMessageGroup(MpiComm comm, const AbortFlag& abort, Tally& tally, std::int64_t longest_message_bytes);

  int size() const override { return size_; }
  int index() const override { return index_; }
  void all_gather(const void* shard, void* whole, std::int64_t count, DType dtype) override;
  void reduce_scatter(const void* whole, void* shard, std::int64_t count, SumTypes types, bool accumulate) override;
  void all_reduce(const void* x, void* sum, std::int64_t count, SumTypes types, bool accumulate) override;

 private:
  using Requests = std::vector<MPI_Request>;
  /// Where the own part of a sum goes, and how.
  struct Result {
    std::byte* own_part = nullptr;
    SumTypes types = DType::f32;
    bool accumulate = false;
  };

  void send(Requests& requests, int peer, const std::byte* data, std::int64_t size_bytes) const;
  void receive(Requests& requests, int peer, std::byte* data, std::int64_t size_bytes) const;
  int peer(int step) const { return (index_ + step) % size_; }
  std::byte* scratch(int turn, int member);
  std::vector<const void*> members_parts(int turn, const std::byte* own);

  /// Moves `pieces` pieces: all sends at once, `turns` receives at a time, and take(k) when piece k is there.
  template <class Send, class Receive, class Take>
  void flow(std::int64_t pieces, std::string_view call, Send send_piece, Receive receive_piece, Take take);
  /// `whole` holds the own part; the others' arrive. Parts in elements, by member.
  void gather(std::byte* whole, std::int64_t element_bytes, const std::vector<Range>& parts, std::string_view call);
  /// Sums the own part over all members' `whole`.
  void reduce(const std::byte* whole, const std::vector<Range>& parts, const Result& result, std::string_view call);

  /// sum = Σ x.
  void replace(const std::byte* x, std::byte* sum, std::int64_t count, SumTypes types);
  /// sum += Σ x, which travels as `wire` once it is reduced and is rounded when it is added; count is bounded.
  void add(const std::byte* x, std::byte* sum, std::int64_t count, SumTypes types, DType wire);

  MpiComm comm_;
  const AbortFlag& abort_;
  Tally& tally_;
  int size_, index_;
  std::int64_t piece_bytes_;
  std::vector<std::byte> scratch_, reduced_;
  Requests sends_;
  std::array<Requests, turns> receives_;
};

}  // namespace foreshard::comm
