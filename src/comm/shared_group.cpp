#include "comm/shared_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "comm/split.hpp"
#include "comm/stream.hpp"
#include "comm/tree_sum.hpp"

namespace foreshard::comm {

namespace {

constexpr std::int64_t page_bytes = 4096;
constexpr std::int64_t piece_bytes =
    256 * 1024;           // one member's part of an all-reduce chunk; stays in a second-level cache
constexpr int turns = 2;  // scratch is written while peers still read the chunk before

std::int64_t round_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

}  // namespace

/// A stretch of an all-reduce, short enough for scratch.
struct SharedGroup::Chunk {
  std::int64_t at = 0;
  std::int64_t count = 0;
  int turn = 0;
  DType wire =
      DType::f32;  ///< type of reduced parts in scratch: they are rounded once, when they reach their destination
  bool past_cache = false;
};

const char* SharedGroup::name_of(Kind kind) {
  constexpr const char* names[] = {"all_gather", "reduce_scatter", "all_reduce"};
  return names[static_cast<int>(kind)];
}

std::string SharedGroup::describe(const Call& call) {
  const auto [from, to] = call.types;
  return fmt::format("{} of {} {}{}{}", name_of(call.kind), call.count, foreshard::name_of(from),
                     from == to ? "" : fmt::format(" into {}", foreshard::name_of(to)),
                     call.accumulate ? ", accumulating" : "");
}

std::int64_t SharedGroup::region_bytes(int members) {
  return round_up(members * static_cast<std::int64_t>(sizeof(Member)), page_bytes) + members * turns * piece_bytes;
}

SharedGroup::SharedGroup(PeerMemory memory, std::shared_ptr<const Mapping> region, const AbortFlag& abort, Tally& tally,
                         int spins)
    : memory_(std::move(memory)), region_(std::move(region)), abort_(abort), tally_(tally), spins_(spins) {}

std::byte* SharedGroup::scratch(int member, int turn) const {
  const std::int64_t begin = round_up(size() * static_cast<std::int64_t>(sizeof(Member)), page_bytes);
  return region_->data() + begin + (member * turns + turn) * piece_bytes;
}

std::int64_t SharedGroup::offset_of(const void* pointer, std::int64_t size_bytes) const {
  const std::int64_t offset = static_cast<const std::byte*>(pointer) - memory_.arenas[index()];
  FORESHARD_EXPECT(size_bytes == 0 || (offset >= 0 && offset + size_bytes <= memory_.arena_bytes),
                   fmt::format("a collective's buffer of {} bytes lies outside the arena of {} bytes", size_bytes,
                               memory_.arena_bytes));
  return offset;
}

void SharedGroup::enter(const Call& call, const void* source, std::int64_t size_bytes) {
  call_ = call;
  abort_.check(name_of(call.kind));
  Member& own = member(index());
  own.offset = offset_of(source, size_bytes);
  own.call = call;
  own.signal.advance();
}

void SharedGroup::expect_same_call(int i) const {
  const Call& other = member(i).call;
  FORESHARD_EXPECT(other == call_,
                   fmt::format("members of a group are in different calls: member {} in {}, member {} in {}", index(),
                               describe(call_), i, describe(other)));
}

void SharedGroup::await(int i) {
  member(i).signal.wait(member(index()).signal.count(), spins_, abort_, name_of(call_.kind));
}

void SharedGroup::await_all() {
  for (int step = 1; step < size(); ++step) await((index() + step) % size());
}

void SharedGroup::signal_and_await_all() {
  member(index()).signal.advance();
  await_all();
}

std::vector<const void*> SharedGroup::sources(std::int64_t skip_bytes) const {
  std::vector<const void*> parts;
  for (int i = 0; i < size(); ++i) parts.push_back(source(i) + skip_bytes);
  return parts;
}

void SharedGroup::all_gather(const void* shard, void* whole, std::int64_t count, DType dtype) {
  const std::int64_t bytes = count * size_bytes(dtype);
  const bool past_cache = too_large_to_cache(bytes * (size() - 1));
  auto* to = static_cast<std::byte*>(whole);
  tally_.all_gather.add(bytes * size(), bytes * (size() - 1));
  enter({Kind::all_gather, dtype, false, count}, shard, bytes);
  if (std::byte* own = to + index() * bytes; own != shard) put(own, shard, static_cast<std::size_t>(bytes), past_cache);
  for (int step = 1; step < size(); ++step) {
    const int peer = (index() + step) % size();
    await(peer);
    expect_same_call(peer);
    put(to + peer * bytes, source(peer), static_cast<std::size_t>(bytes), past_cache);
  }
  if (past_cache) finish_streams();
  signal_and_await_all();
}

void SharedGroup::reduce_scatter(const void* whole, void* shard, std::int64_t count, SumTypes types, bool accumulate) {
  const std::int64_t bytes = count * size_bytes(types.from);
  tally_.reduce_scatter.add(bytes * size(), bytes * (size() - 1));
  enter({Kind::reduce_scatter, types, accumulate, count}, whole, bytes * size());
  await_all();
  for (int i = 0; i < size(); ++i) expect_same_call(i);
  tree_sum({.parts = sources(index() * bytes),
            .part_type = types.from,
            .out = shard,
            .out_type = types.to,
            .count = count,
            .accumulate = accumulate,
            .past_cache = too_large_to_cache(count * size_bytes(types.to))});
  signal_and_await_all();
}

void SharedGroup::all_reduce(const void* x, void* sum, std::int64_t count, SumTypes types, bool accumulate) {
  const std::int64_t own = part_of(count, index(), size()).length();
  const DType wire = accumulate ? sum_type(types.to) : types.to;
  const bool past_cache = too_large_to_cache(count * size_bytes(types.to));
  tally_.all_reduce.add(count * size_bytes(types.from),
                        own * (size() - 1) * size_bytes(types.from) + (count - own) * size_bytes(wire));
  enter({Kind::all_reduce, types, accumulate, count}, x, count * size_bytes(types.from));
  await_all();
  for (int i = 0; i < size(); ++i) expect_same_call(i);
  const std::int64_t step = piece_bytes / size_bytes(wire) * size();
  for (Chunk chunk{.wire = wire, .past_cache = past_cache}; chunk.at < count; chunk.at += step, chunk.turn ^= 1) {
    chunk.count = std::min(step, count - chunk.at);
    reduce_own_part(chunk);
    signal_and_await_all();
    collect_parts(chunk, static_cast<std::byte*>(sum));
  }
  signal_and_await_all();
}

void SharedGroup::reduce_own_part(const Chunk& chunk) const {
  const Range part = part_of(chunk.count, index(), size());
  tree_sum({.parts = sources((chunk.at + part.begin) * size_bytes(call_.types.from)),
            .part_type = call_.types.from,
            .out = scratch(index(), chunk.turn),
            .out_type = chunk.wire,
            .count = part.length(),
            .past_cache = true});
}

void SharedGroup::collect_parts(const Chunk& chunk, std::byte* sum) const {
  for (int step = 0; step < size(); ++step) {
    const int peer = (index() + step) % size();
    const Range part = part_of(chunk.count, peer, size());
    const void* reduced = scratch(peer, chunk.turn);
    tree_sum({.parts = {&reduced, 1},
              .part_type = chunk.wire,
              .out = sum + (chunk.at + part.begin) * size_bytes(call_.types.to),
              .out_type = call_.types.to,
              .count = part.length(),
              .accumulate = call_.accumulate,
              .past_cache = chunk.past_cache});
  }
}

}  // namespace foreshard::comm
