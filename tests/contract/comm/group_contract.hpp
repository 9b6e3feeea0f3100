#pragma once
#include <fmt/format.h>

#include <cstring>

#include "contract/comm/rounding.hpp"
#include "contract/comm/run.hpp"

namespace foreshard::comm::testing {

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

template <class T>
void fill(std::span<T> values, int rank, int salt = 0) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element<T>(rank, static_cast<std::int64_t>(i), salt);
}

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// Fails once per buffer, naming the first element of which `wrong`, a function of index and value, says what it
/// should be instead. Of large buffers looks at every 17th element and the last.
template <class T, class Wrong>
void expect_each(std::span<const T> seen, const std::string& what, Wrong wrong) {
  const std::size_t step = seen.size() > 100'000 ? 17 : 1;
  for (std::size_t i = (seen.size() + step - 1) % step; i < seen.size(); i += step) {
    const std::string expected = wrong(static_cast<std::int64_t>(i), seen[i]);
    if (expected.empty()) continue;
    ADD_FAILURE() << fmt::format("{}: element {} of {} is {}, not {}", what, i, seen.size(), wide(seen[i]), expected);
    return;
  }
}

template <class T>
void expect_elements(std::span<const T> seen, const std::function<T(std::int64_t)>& expected, const std::string& what) {
  expect_each(seen, what, [&](std::int64_t i, T value) {
    const T right = expected(i);
    return same_bits(value, right) ? std::string() : fmt::format("{}", wide(right));
  });
}

/// A group under test, as one of its members sees it.
struct Subject {
  const Run& run;
  Communicator& ranks;
  Group& group;
  std::span<const int> members;
  Deal deal;  ///< of what a check may use of the arena

  int rank() const { return ranks.rank(); }
  bool makes(SumTypes types, bool accumulate) const {
    const bool is_float = types.from == DType::f32 || size_bytes(types.from) == 2;
    return !run.only_floats_add_up || is_float || (types.from == types.to && !accumulate);
  }
  std::string describe(std::int64_t count, SumTypes types, const char* call) const {
    return fmt::format("{} of {} {} into {} on rank {} ({} of {})", call, count, name_of(types.from), name_of(types.to),
                       rank(), group.index(), group.size());
  }
};

/// What lies where a result is to be left.
template <class T>
T before(int rank, std::int64_t index) {
  return element<T>(1000 + rank, index);
}

/// `seen` holds the sums of elements of type T from the `first` on.
template <class T, class To>
void expect_sums(const Subject& s, std::span<const To> seen, std::int64_t first, bool accumulate,
                 const std::string& what) {
  if (std::is_integral_v<T> || s.run.sums == Sums::of_the_tree)
    return expect_elements<To>(
        seen,
        [&](std::int64_t i) { return expected_sum<T>(s.members, first + i, accumulate, before<To>(s.rank(), i)); },
        what);
  expect_each(seen, what, [&](std::int64_t i, To value) {
    const Bounds right = left_in<T, To>(bounded_sum<T>(s.members, first + i), accumulate, before<To>(s.rank(), i));
    const bool is_near = std::abs(static_cast<long double>(wide(value)) - right.sum) <= right.error;
    return is_near ? std::string() : fmt::format("{} ± {}", right.sum, right.error);
  });
}

template <class T>
void check_all_gather(Subject s, std::int64_t count, bool in_place) {
  const std::span<T> whole = s.deal.next<T>(count * s.group.size()), apart = s.deal.next<T>(count);
  const std::span<T> shard =
      in_place ? whole.subspan(static_cast<std::size_t>(s.group.index() * count), static_cast<std::size_t>(count))
               : apart;
  fill(whole, 1000);
  fill(shard, s.rank());
  s.group.all_gather(shard.data(), whole.data(), count, dtype_of<T>);
  expect_elements<T>(
      whole, [&](std::int64_t i) { return element<T>(s.members[static_cast<std::size_t>(i / count)], i % count); },
      s.describe(count, dtype_of<T>, in_place ? "all_gather in place" : "all_gather"));
}

template <class T, class To = T>
void check_reduce_scatter(Subject s, std::int64_t count, bool accumulate) {
  const SumTypes types(dtype_of<T>, dtype_of<To>);
  if (!s.makes(types, accumulate)) return;
  const std::span<T> whole = s.deal.next<T>(count * s.group.size());
  const std::span<To> shard = s.deal.next<To>(count);
  fill(whole, s.rank());
  fill(shard, 1000 + s.rank());
  s.group.reduce_scatter(whole.data(), shard.data(), count, types, accumulate);
  expect_sums<T, To>(s, shard, s.group.index() * count, accumulate,
                     s.describe(count, types, accumulate ? "accumulating reduce_scatter" : "reduce_scatter"));
  expect_elements<T>(
      whole, [&](std::int64_t i) { return element<T>(s.rank(), i); }, "the input of reduce_scatter");
}

enum class Reduce { apart, accumulate, in_place };

template <class T, class To = T>
void check_all_reduce(Subject s, std::int64_t count, Reduce how) {
  const SumTypes types(dtype_of<T>, dtype_of<To>);
  const bool accumulate = how == Reduce::accumulate;
  if (!s.makes(types, accumulate)) return;
  const std::span<T> x = s.deal.next<T>(count);
  std::span<To> sum = s.deal.next<To>(count);
  if constexpr (std::is_same_v<T, To>) {
    if (how == Reduce::in_place) sum = x;
  }
  fill(sum, 1000 + s.rank());
  fill(x, s.rank());
  s.group.all_reduce(x.data(), sum.data(), count, types, accumulate);
  expect_sums<T, To>(s, sum, 0, accumulate,
                     s.describe(count, types, accumulate ? "accumulating all_reduce" : "all_reduce"));
}

template <class T>
void check_collectives(const Subject& s, std::int64_t count) {
  for (const bool in_place : {false, true}) check_all_gather<T>(s, count, in_place);
  for (const bool accumulate : {false, true}) check_reduce_scatter<T>(s, count, accumulate);
  for (const Reduce how : {Reduce::apart, Reduce::accumulate, Reduce::in_place}) check_all_reduce<T>(s, count, how);
}

/// Sums of T that leave To.
template <class T, class To>
void check_reductions(const Subject& s, std::int64_t count) {
  for (const bool accumulate : {false, true}) {
    check_reduce_scatter<T, To>(s, count, accumulate);
    check_all_reduce<T, To>(s, count, accumulate ? Reduce::accumulate : Reduce::apart);
  }
}

inline void check_collectives_of_every_type(const Subject& s, std::int64_t count) {
  check_collectives<float>(s, count);
  check_collectives<double>(s, count);
  check_collectives<Bf16>(s, count);
  check_collectives<F16>(s, count);
  check_collectives<std::int32_t>(s, count);
  check_collectives<std::int64_t>(s, count);
  check_reductions<Bf16, float>(s, count);
  check_reductions<F16, float>(s, count);
  check_reductions<float, Bf16>(s, count);
  check_reductions<float, F16>(s, count);
}

}  // namespace foreshard::comm::testing
