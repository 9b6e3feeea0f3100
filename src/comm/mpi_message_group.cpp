#include "comm/mpi_message_group.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/split.hpp"
#include "comm/tree_sum.hpp"

namespace foreshard::comm {

namespace {

constexpr std::int64_t scratch_bytes = std::int64_t{8} << 20;
constexpr std::int64_t smallest_piece_bytes = 16 * 1024, largest_piece_bytes = 256 * 1024;
constexpr int tag = 0;

std::int64_t piece_for(int size, std::int64_t longest_message_bytes) {
  const std::int64_t fair =
      std::clamp(scratch_bytes / (MpiMessageGroup::turns * size), smallest_piece_bytes, largest_piece_bytes);
  return std::max<std::int64_t>(8, std::min(fair, longest_message_bytes) / 8 * 8);
}

/// The k-th of the pieces of `length` elements that a range is cut into; empty behind its end.
Range piece_of(const Range& range, std::int64_t k, std::int64_t length) {
  const std::int64_t begin = std::min(range.begin + k * length, range.end);
  return {begin, std::min(begin + length, range.end)};
}

/// `size` ranges of `count` elements, one behind the other.
std::vector<Range> equal_parts(std::int64_t count, int size) {
  std::vector<Range> parts;
  for (int i = 0; i < size; ++i) parts.push_back({i * count, (i + 1) * count});
  return parts;
}

/// The ranges of part_of.
std::vector<Range> parts_of(std::int64_t count, int size) {
  std::vector<Range> parts;
  for (int i = 0; i < size; ++i) parts.push_back(part_of(count, i, size));
  return parts;
}

std::int64_t pieces_in(const std::vector<Range>& parts, std::int64_t piece) {
  std::int64_t longest = 0;
  for (const Range& part : parts) longest = std::max(longest, part.length());
  return (longest + piece - 1) / piece;
}

}  // namespace

MpiMessageGroup::MpiMessageGroup(MpiComm comm, const AbortFlag& abort, Tally& tally, std::int64_t longest_message_bytes)
    : comm_(std::move(comm)),
      abort_(abort),
      tally_(tally),
      size_(comm_.size()),
      index_(comm_.rank()),
      piece_bytes_(piece_for(size_, longest_message_bytes)) {}

void MpiMessageGroup::send(Requests& requests, int peer, const std::byte* data, std::int64_t size_bytes) const {
  if (size_bytes == 0) return;
  mpi_call("MPI_Isend", MPI_Isend, data, static_cast<int>(size_bytes), MPI_BYTE, peer, tag, comm_.get(),
           &requests.emplace_back());
}

void MpiMessageGroup::receive(Requests& requests, int peer, std::byte* data, std::int64_t size_bytes) const {
  if (size_bytes == 0) return;
  mpi_call("MPI_Irecv", MPI_Irecv, data, static_cast<int>(size_bytes), MPI_BYTE, peer, tag, comm_.get(),
           &requests.emplace_back());
}

std::byte* MpiMessageGroup::scratch(int turn, int member) {
  if (scratch_.empty()) scratch_.resize(static_cast<std::size_t>(turns * size_ * piece_bytes_));
  return scratch_.data() + (turn * size_ + member) * piece_bytes_;
}

std::vector<const void*> MpiMessageGroup::members_parts(int turn, const std::byte* own) {
  std::vector<const void*> all;
  for (int member = 0; member < size_; ++member) all.push_back(member == index_ ? own : scratch(turn, member));
  return all;
}

template <class Send, class Receive, class Take>
void MpiMessageGroup::flow(std::int64_t pieces, std::string_view call, Send send_piece, Receive receive_piece,
                           Take take) {
  const auto begin = [&](std::int64_t k) {
    Requests& requests = receives_[k % turns];
    requests.clear();
    receive_piece(requests, k);
  };
  sends_.clear();
  for (std::int64_t k = 0; k < std::min<std::int64_t>(turns, pieces); ++k) begin(k);
  for (std::int64_t k = 0; k < pieces; ++k) send_piece(k);
  for (std::int64_t k = 0; k < pieces; ++k) {
    wait_for(receives_[k % turns], abort_, call);
    take(k);
    if (k + turns < pieces) begin(k + turns);
  }
  wait_for(sends_, abort_, call);
}

void MpiMessageGroup::gather(std::byte* whole, std::int64_t element_bytes, const std::vector<Range>& parts,
                             std::string_view call) {
  const std::int64_t piece = piece_bytes_ / element_bytes;
  const auto send_piece = [&](std::int64_t k) {
    const Range own = piece_of(parts[index_], k, piece);
    for (int step = 1; step < size_; ++step)
      send(sends_, peer(step), whole + own.begin * element_bytes, own.length() * element_bytes);
  };
  const auto receive_piece = [&](Requests& requests, std::int64_t k) {
    for (int step = 1; step < size_; ++step) {
      const Range theirs = piece_of(parts[peer(size_ - step)], k, piece);
      receive(requests, peer(size_ - step), whole + theirs.begin * element_bytes, theirs.length() * element_bytes);
    }
  };
  flow(pieces_in(parts, piece), call, send_piece, receive_piece, [](std::int64_t) {});
}

void MpiMessageGroup::reduce(const std::byte* whole, const std::vector<Range>& parts, const Result& result,
                             std::string_view call) {
  const std::int64_t element_bytes = size_bytes(result.types.from), piece = piece_bytes_ / element_bytes;
  const Range own = parts[index_];
  const auto send_piece = [&](std::int64_t k) {
    for (int step = 1; step < size_; ++step) {
      const Range theirs = piece_of(parts[peer(step)], k, piece);
      send(sends_, peer(step), whole + theirs.begin * element_bytes, theirs.length() * element_bytes);
    }
  };
  const auto receive_piece = [&](Requests& requests, std::int64_t k) {
    const std::int64_t bytes = piece_of(own, k, piece).length() * element_bytes;
    for (int step = 1; step < size_; ++step)
      receive(requests, peer(size_ - step), scratch(static_cast<int>(k % turns), peer(size_ - step)), bytes);
  };
  const auto take = [&](std::int64_t k) {
    const Range at = piece_of(own, k, piece);
    tree_sum({.parts = members_parts(static_cast<int>(k % turns), whole + at.begin * element_bytes),
              .part_type = result.types.from,
              .out = result.own_part + (at.begin - own.begin) * size_bytes(result.types.to),
              .out_type = result.types.to,
              .count = at.length(),
              .accumulate = result.accumulate});
  };
  flow(pieces_in(parts, piece), call, send_piece, receive_piece, take);
}

void MpiMessageGroup::all_gather(const void* shard, void* whole, std::int64_t count, DType dtype) {
  const std::int64_t bytes = count * size_bytes(dtype);
  auto* to = static_cast<std::byte*>(whole);
  tally_.all_gather.add(bytes * size_, bytes * (size_ - 1));
  std::byte* own = to + index_ * bytes;
  if (own != shard && bytes > 0) std::memcpy(own, shard, static_cast<std::size_t>(bytes));
  gather(to, size_bytes(dtype), equal_parts(count, size_), "all_gather");
}

void MpiMessageGroup::reduce_scatter(const void* whole, void* shard, std::int64_t count, SumTypes types,
                                     bool accumulate) {
  const std::int64_t shard_bytes = count * size_bytes(types.from);
  tally_.reduce_scatter.add(shard_bytes * size_, shard_bytes * (size_ - 1));
  reduce(static_cast<const std::byte*>(whole), equal_parts(count, size_),
         {static_cast<std::byte*>(shard), types, accumulate}, "reduce_scatter");
}

void MpiMessageGroup::all_reduce(const void* x, void* sum, std::int64_t count, SumTypes types, bool accumulate) {
  const DType wire = accumulate ? sum_type(types.to) : types.to;
  const std::int64_t own = part_of(count, index_, size_).length();
  tally_.all_reduce.add(count * size_bytes(types.from),
                        own * (size_ - 1) * size_bytes(types.from) + (count - own) * size_bytes(wire));
  const auto* from = static_cast<const std::byte*>(x);
  auto* to = static_cast<std::byte*>(sum);
  if (!accumulate) return replace(from, to, count, types);
  const std::int64_t chunk = scratch_bytes / size_bytes(wire) / size_ * size_;
  for (std::int64_t at = 0; at < count; at += chunk)
    add(from + at * size_bytes(types.from), to + at * size_bytes(types.to), std::min(chunk, count - at), types, wire);
}

/// What is sent of `x` has left before anything arrives in `sum`, which may be the same.
void MpiMessageGroup::replace(const std::byte* x, std::byte* sum, std::int64_t count, SumTypes types) {
  const auto parts = parts_of(count, size_);
  const std::int64_t to_bytes = size_bytes(types.to);
  reduce(x, parts, {sum + parts[index_].begin * to_bytes, types, false}, "all_reduce");
  gather(sum, to_bytes, parts, "all_reduce");
}

void MpiMessageGroup::add(const std::byte* x, std::byte* sum, std::int64_t count, SumTypes types, DType wire) {
  reduced_.resize(std::max(reduced_.size(), static_cast<std::size_t>(count * size_bytes(wire))));
  replace(x, reduced_.data(), count, {types.from, wire});
  const void* reduced = reduced_.data();
  tree_sum({.parts = {&reduced, 1},
            .part_type = wire,
            .out = sum,
            .out_type = types.to,
            .count = count,
            .accumulate = true});
}

}  // namespace foreshard::comm
