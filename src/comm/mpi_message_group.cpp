#include "comm/mpi_message_group.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/split.hpp"
#include "comm/tree_sum.hpp"

namespace foreshard::comm {

namespace {

constexpr std::int64_t turns = 2;  // while one chunk is summed the next arrives
constexpr std::int64_t scratch_bytes = std::int64_t{8} << 20;
constexpr std::int64_t smallest_piece_bytes = 16 * 1024, largest_piece_bytes = std::int64_t{2} << 20;
constexpr int tag = 0;

std::int64_t piece_for(int size, std::int64_t longest_message_bytes) {
  const std::int64_t fair = std::clamp(scratch_bytes / (turns * size), smallest_piece_bytes, largest_piece_bytes);
  return std::max<std::int64_t>(8, std::min(fair, longest_message_bytes) / 8 * 8);
}

}  // namespace

struct MpiMessageGroup::Scatter {
  const std::byte* whole = nullptr;
  std::int64_t shard_bytes = 0;
  std::int64_t element_bytes = 0;
};

struct MpiMessageGroup::Reduction {
  const std::byte* x = nullptr;
  std::byte* sum = nullptr;
  SumTypes types = DType::f32;
  DType wire = DType::f32;  ///< of the reduced parts: they are rounded once, when they reach their destination
  bool accumulate = false;

  /// Of the wider of the two types that go through scratch.
  std::int64_t element_bytes() const { return std::max(size_bytes(types.from), size_bytes(wire)); }
};

MpiMessageGroup::MpiMessageGroup(MpiComm comm, const AbortFlag& abort, Tally& tally, std::int64_t longest_message_bytes)
    : comm_(std::move(comm)),
      abort_(abort),
      tally_(tally),
      longest_message_bytes_(longest_message_bytes),
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

std::vector<const void*> MpiMessageGroup::parts(int turn, const std::byte* own) {
  std::vector<const void*> all;
  for (int member = 0; member < size_; ++member) all.push_back(member == index_ ? own : scratch(turn, member));
  return all;
}

void MpiMessageGroup::all_gather(const void* shard, void* whole, std::int64_t count, DType dtype) {
  const std::int64_t bytes = count * size_bytes(dtype);
  const auto* from = static_cast<const std::byte*>(shard);
  auto* to = static_cast<std::byte*>(whole);
  tally_.all_gather.add(bytes * size_, bytes * (size_ - 1));
  std::byte* own = to + index_ * bytes;
  if (own != from && bytes > 0) std::memcpy(own, from, static_cast<std::size_t>(bytes));
  for (std::int64_t at = 0; at < bytes; at += longest_message_bytes_) {
    const std::int64_t length = std::min(longest_message_bytes_, bytes - at);
    requests_[0].clear();
    for (int step = 1; step < size_; ++step)
      receive(requests_[0], peer(size_ - step), to + peer(size_ - step) * bytes + at, length);
    for (int step = 1; step < size_; ++step) send(requests_[0], peer(step), own + at, length);
    wait_for(requests_[0], abort_, "all_gather");
  }
}

void MpiMessageGroup::start(const Scatter& scatter, std::int64_t at, std::int64_t count, int turn) {
  Requests& requests = requests_[turn];
  requests.clear();
  const std::int64_t length = count * scatter.element_bytes;
  for (int step = 1; step < size_; ++step)
    receive(requests, peer(size_ - step), scratch(turn, peer(size_ - step)), length);
  for (int step = 1; step < size_; ++step) {
    send(requests, peer(step), scatter.whole + peer(step) * scatter.shard_bytes + at * scatter.element_bytes, length);
  }
}

void MpiMessageGroup::reduce_scatter(const void* whole, void* shard, std::int64_t count, SumTypes types,
                                     bool accumulate) {
  const std::int64_t element_bytes = size_bytes(types.from);
  const Scatter scatter{static_cast<const std::byte*>(whole), count * element_bytes, element_bytes};
  tally_.reduce_scatter.add(scatter.shard_bytes * size_, scatter.shard_bytes * (size_ - 1));
  const std::byte* own = scatter.whole + index_ * scatter.shard_bytes;
  const std::int64_t piece = piece_bytes_ / element_bytes;
  const auto length = [&](std::int64_t at) { return std::min(piece, count - at); };
  if (count > 0) start(scatter, 0, length(0), 0);
  int turn = 0;
  for (std::int64_t at = 0; at < count; at += piece, turn ^= 1) {
    if (at + piece < count) start(scatter, at + piece, length(at + piece), turn ^ 1);
    wait_for(requests_[turn], abort_, "reduce_scatter");
    tree_sum({.parts = parts(turn, own + at * element_bytes),
              .part_type = types.from,
              .out = static_cast<std::byte*>(shard) + at * size_bytes(types.to),
              .out_type = types.to,
              .count = length(at),
              .accumulate = accumulate});
  }
}

void MpiMessageGroup::all_reduce(const void* x, void* sum, std::int64_t count, SumTypes types, bool accumulate) {
  const Reduction reduction{static_cast<const std::byte*>(x), static_cast<std::byte*>(sum), types,
                            accumulate ? sum_type(types.to) : types.to, accumulate};
  const std::int64_t own = part_of(count, index_, size_).length();
  tally_.all_reduce.add(count * size_bytes(types.from),
                        own * (size_ - 1) * size_bytes(types.from) + (count - own) * size_bytes(reduction.wire));
  const std::int64_t step = piece_bytes_ / reduction.element_bytes() * size_;
  for (std::int64_t at = 0; at < count; at += step) {
    const std::int64_t length = std::min(step, count - at);
    exchange_pieces(reduction, at, length);
    reduce_own_part(reduction, at, length);
    exchange_reduced(reduction, length);
    collect_parts(reduction, at, length);
  }
}

void MpiMessageGroup::exchange_pieces(const Reduction& reduction, std::int64_t at, std::int64_t count) {
  requests_[0].clear();
  const std::int64_t element_bytes = size_bytes(reduction.types.from);
  const std::int64_t own_bytes = part_of(count, index_, size_).length() * element_bytes;
  for (int step = 1; step < size_; ++step)
    receive(requests_[0], peer(size_ - step), scratch(0, peer(size_ - step)), own_bytes);
  for (int step = 1; step < size_; ++step) {
    const Range part = part_of(count, peer(step), size_);
    send(requests_[0], peer(step), reduction.x + (at + part.begin) * element_bytes, part.length() * element_bytes);
  }
  wait_for(requests_[0], abort_, "all_reduce");
}

void MpiMessageGroup::reduce_own_part(const Reduction& reduction, std::int64_t at, std::int64_t count) {
  const Range part = part_of(count, index_, size_);
  tree_sum({.parts = parts(0, reduction.x + (at + part.begin) * size_bytes(reduction.types.from)),
            .part_type = reduction.types.from,
            .out = scratch(1, index_),
            .out_type = reduction.wire,
            .count = part.length()});
}

void MpiMessageGroup::exchange_reduced(const Reduction& reduction, std::int64_t count) {
  requests_[0].clear();
  const auto part_bytes = [&](int member) {
    return part_of(count, member, size_).length() * size_bytes(reduction.wire);
  };
  for (int step = 1; step < size_; ++step)
    receive(requests_[0], peer(size_ - step), scratch(1, peer(size_ - step)), part_bytes(peer(size_ - step)));
  for (int step = 1; step < size_; ++step) send(requests_[0], peer(step), scratch(1, index_), part_bytes(index_));
  wait_for(requests_[0], abort_, "all_reduce");
}

void MpiMessageGroup::collect_parts(const Reduction& reduction, std::int64_t at, std::int64_t count) {
  for (int member = 0; member < size_; ++member) {
    const Range part = part_of(count, member, size_);
    const void* reduced = scratch(1, member);
    tree_sum({.parts = {&reduced, 1},
              .part_type = reduction.wire,
              .out = reduction.sum + (at + part.begin) * size_bytes(reduction.types.to),
              .out_type = reduction.types.to,
              .count = part.length(),
              .accumulate = reduction.accumulate});
  }
}

}  // namespace foreshard::comm
