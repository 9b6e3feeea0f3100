#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>

#include "comm/communicator.hpp"
#include "contract/comm/elements.hpp"

/// What every communicator must do. An implementation instantiates CommunicatorContract with a Run: how to call a
/// function once per rank, each with its own connection. Every check happens on every rank of the run that this process
/// holds.
namespace foreshard::comm::testing {

struct Run {
  std::string name;
  int size = 1;
  std::function<void(const std::function<void(Communicator&)>&)> on_every_rank;
};
inline void PrintTo(const Run& run, std::ostream* out) { *out << run.name; }
inline std::string name_of_run(const ::testing::TestParamInfo<Run>& info) { return info.param.name; }

/// Typed views into an arena, dealt from its beginning, each on a cache line of its own.
class Deal {
 public:
  explicit Deal(std::span<std::byte> arena) : arena_(arena) {}

  template <class T>
  std::span<T> next(std::int64_t count) {
    const std::size_t bytes = (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    EXPECT_LE(used_ + bytes, arena_.size());
    T* data = reinterpret_cast<T*>(arena_.data() + used_);
    used_ += bytes;
    return {data, static_cast<std::size_t>(count)};
  }

 private:
  std::span<std::byte> arena_;
  std::size_t used_ = 0;
};

inline std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

template <class T>
void fill(std::span<T> values, int rank, int salt = 0) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element<T>(rank, static_cast<std::int64_t>(i), salt);
}

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// Fails once per buffer, naming the first wrong element. Of large buffers looks at every 17th element and the last.
template <class T>
void expect_elements(std::span<const T> seen, const std::function<T(std::int64_t)>& expected, const std::string& what) {
  const std::size_t step = seen.size() > 100'000 ? 17 : 1;
  for (std::size_t i = (seen.size() + step - 1) % step; i < seen.size(); i += step) {
    const T right = expected(static_cast<std::int64_t>(i));
    if (same_bits(seen[i], right)) continue;
    ADD_FAILURE() << what << ": element " << i << " of " << seen.size() << " is " << wide(seen[i]) << ", not "
                  << wide(right);
    return;
  }
}

inline std::string describe(const Communicator& ranks, const Group& group, std::int64_t count, SumTypes types,
                            const char* call) {
  return std::string(call) + " of " + std::to_string(count) + " " + std::string(name_of(types.from)) + " into " +
         std::string(name_of(types.to)) + " on rank " + std::to_string(ranks.rank()) + " (" +
         std::to_string(group.index()) + " of " + std::to_string(group.size()) + ")";
}

template <class T>
void check_all_gather(Communicator& ranks, Group& group, Deal deal, std::span<const int> members, std::int64_t count,
                      bool in_place) {
  const std::span<T> whole = deal.next<T>(count * group.size()), apart = deal.next<T>(count);
  const std::span<T> shard =
      in_place ? whole.subspan(static_cast<std::size_t>(group.index() * count), static_cast<std::size_t>(count))
               : apart;
  fill(whole, 1000);
  fill(shard, ranks.rank());
  group.all_gather(shard.data(), whole.data(), count, dtype_of<T>);
  expect_elements<T>(
      whole, [&](std::int64_t i) { return element<T>(members[static_cast<std::size_t>(i / count)], i % count); },
      describe(ranks, group, count, dtype_of<T>, in_place ? "all_gather in place" : "all_gather"));
}

template <class T, class To = T>
void check_reduce_scatter(Communicator& ranks, Group& group, Deal deal, std::span<const int> members,
                          std::int64_t count, bool accumulate) {
  const SumTypes types(dtype_of<T>, dtype_of<To>);
  const std::span<T> whole = deal.next<T>(count * group.size());
  const std::span<To> shard = deal.next<To>(count);
  fill(whole, ranks.rank());
  fill(shard, 1000 + ranks.rank());
  group.reduce_scatter(whole.data(), shard.data(), count, types, accumulate);
  const std::int64_t first = group.index() * count;
  expect_elements<To>(
      shard,
      [&](std::int64_t i) {
        return expected_sum<T>(members, first + i, accumulate, element<To>(1000 + ranks.rank(), i));
      },
      describe(ranks, group, count, types, accumulate ? "accumulating reduce_scatter" : "reduce_scatter"));
  expect_elements<T>(
      whole, [&](std::int64_t i) { return element<T>(ranks.rank(), i); }, "the input of reduce_scatter");
}

enum class Reduce { apart, accumulate, in_place };

template <class T, class To = T>
void check_all_reduce(Communicator& ranks, Group& group, Deal deal, std::span<const int> members, std::int64_t count,
                      Reduce how) {
  const SumTypes types(dtype_of<T>, dtype_of<To>);
  const std::span<T> x = deal.next<T>(count);
  std::span<To> sum = deal.next<To>(count);
  if constexpr (std::is_same_v<T, To>) {
    if (how == Reduce::in_place) sum = x;
  }
  fill(sum, 1000 + ranks.rank());
  fill(x, ranks.rank());
  group.all_reduce(x.data(), sum.data(), count, types, how == Reduce::accumulate);
  expect_elements<To>(
      sum,
      [&](std::int64_t i) {
        return expected_sum<T>(members, i, how == Reduce::accumulate, element<To>(1000 + ranks.rank(), i));
      },
      describe(ranks, group, count, types, how == Reduce::accumulate ? "accumulating all_reduce" : "all_reduce"));
}

template <class T>
void check_collectives(Communicator& ranks, Group& group, Deal deal, std::span<const int> members, std::int64_t count) {
  for (const bool in_place : {false, true}) check_all_gather<T>(ranks, group, deal, members, count, in_place);
  for (const bool accumulate : {false, true}) check_reduce_scatter<T>(ranks, group, deal, members, count, accumulate);
  for (const Reduce how : {Reduce::apart, Reduce::accumulate, Reduce::in_place}) {
    check_all_reduce<T>(ranks, group, deal, members, count, how);
  }
}

/// Sums of T that leave To.
template <class T, class To>
void check_reductions(Communicator& ranks, Group& group, Deal deal, std::span<const int> members, std::int64_t count) {
  for (const bool accumulate : {false, true}) {
    check_reduce_scatter<T, To>(ranks, group, deal, members, count, accumulate);
    check_all_reduce<T, To>(ranks, group, deal, members, count, accumulate ? Reduce::accumulate : Reduce::apart);
  }
}

inline void check_collectives_of_every_type(Communicator& ranks, Group& group, Deal deal, std::span<const int> members,
                                            std::int64_t count) {
  check_collectives<float>(ranks, group, deal, members, count);
  check_collectives<double>(ranks, group, deal, members, count);
  check_collectives<Bf16>(ranks, group, deal, members, count);
  check_collectives<F16>(ranks, group, deal, members, count);
  check_collectives<std::int32_t>(ranks, group, deal, members, count);
  check_collectives<std::int64_t>(ranks, group, deal, members, count);
  check_reductions<Bf16, float>(ranks, group, deal, members, count);
  check_reductions<F16, float>(ranks, group, deal, members, count);
  check_reductions<float, Bf16>(ranks, group, deal, members, count);
  check_reductions<float, F16>(ranks, group, deal, members, count);
}

class CommunicatorContract : public ::testing::TestWithParam<Run> {
 protected:
  /// Calls `check(ranks, arena)` on every rank.
  void on_every_rank(std::int64_t arena_bytes, const std::function<void(Communicator&, std::span<std::byte>)>& check) {
    GetParam().on_every_rank([&](Communicator& ranks) { check(ranks, ranks.arena(arena_bytes)); });
  }
  int size() const { return GetParam().size; }
};

}  // namespace foreshard::comm::testing
