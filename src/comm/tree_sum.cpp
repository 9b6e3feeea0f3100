#include "comm/tree_sum.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "base/error.hpp"
#include "base/half.hpp"
#include "comm/numbers.hpp"
#include "comm/stream.hpp"

// Exact aliases are element-wise, so no iteration depends on another.
#define FORESHARD_INDEPENDENT _Pragma("GCC ivdep")

namespace foreshard::comm {

namespace {

constexpr std::int64_t block = 128;  // elements: operands, results and scratch stay in the first-level cache
constexpr int max_depth = 24;

constexpr int left_of(int members) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(members - 1))); }

template <class Part>
using Parts = const typename Part::Stored* const*;

/// The tree over a number of members known to the compiler.
template <class Part, int members>
typename Part::Summed sum_of(Parts<Part> parts, std::int64_t i) {
  if constexpr (members == 1) {
    return Part::widen(parts[0][i]);
  } else {
    constexpr int left = left_of(members);
    return sum_of<Part, left>(parts, i) + sum_of<Part, members - left>(parts + left, i);
  }
}

template <class Part, int members>
void sum_few(Parts<Part> parts, std::int64_t at, std::int64_t n, typename Part::Summed* out) {
  std::array<const typename Part::Stored*, members> from;
  std::transform(parts, parts + members, from.begin(), [at](auto part) { return part + at; });
  FORESHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) out[i] = sum_of<Part, members>(from.data(), i);
}

/// The tree over any number of members, for n ≤ block elements. `scratch` has room for the inner nodes' right sides.
template <class Part>
void sum_node(Parts<Part> parts, int members, std::int64_t at, std::int64_t n, typename Part::Summed* out,
              typename Part::Summed* scratch) {
  if (members == 1) return sum_few<Part, 1>(parts, at, n, out);
  if (members == 2) return sum_few<Part, 2>(parts, at, n, out);
  if (members == 4) return sum_few<Part, 4>(parts, at, n, out);
  const int left = left_of(members);
  sum_node<Part>(parts, left, at, n, out, scratch);
  sum_node<Part>(parts + left, members - left, at, n, scratch, scratch + block);
  FORESHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) out[i] += scratch[i];
}

template <class Part, class Out>
class Summation {
 public:
  explicit Summation(const TreeSum& sum)
      : out_(static_cast<Target*>(sum.out)), sum_(sum), past_cache_(sum.past_cache && !sum.accumulate) {
    for (const void* part : sum.parts) parts_.push_back(static_cast<const typename Part::Stored*>(part));
  }

  void run() {
    const std::int64_t first_line = std::min(sum_.count, elements_before_line());
    const std::int64_t after_lines = first_line + (sum_.count - first_line) / line * line;
    blocks(0, first_line);
    whole_lines(first_line, after_lines);
    blocks(after_lines, sum_.count);
    if (past_cache_) finish_streams();
  }

 private:
  using Target = typename Out::Stored;
  using Summed = typename Part::Summed;
  static constexpr std::int64_t line = line_bytes / sizeof(Target);

  /// All, where no element begins a line.
  std::int64_t elements_before_line() const {
    const std::size_t bytes = bytes_to_next_line(out_);
    return bytes % sizeof(Target) == 0 ? static_cast<std::int64_t>(bytes / sizeof(Target)) : sum_.count;
  }

  void whole_lines(std::int64_t begin, std::int64_t end) {
    switch (parts_.size()) {
      case 1:
        return lines<1>(begin, end);
      case 2:
        return lines<2>(begin, end);
      case 4:
        return lines<4>(begin, end);
      default:
        return blocks(begin, end);
    }
  }

  /// Few members: from their memory to the result in registers, so that loads and stores overlap all the time.
  template <int members>
  void lines(std::int64_t begin, std::int64_t end) {
    if (sum_.accumulate) return lines<members, true, false>(begin, end);
    if (past_cache_) return lines<members, false, true>(begin, end);
    lines<members, false, false>(begin, end);
  }

  template <int members, bool accumulate, bool past_cache>
  void lines(std::int64_t begin, std::int64_t end) {
    std::array<const typename Part::Stored*, members> parts;
    std::copy(parts_.begin(), parts_.end(), parts.begin());
    Target* const out = out_;
    for (std::int64_t at = begin; at < end; at += line) {
      alignas(line_bytes) std::array<Target, line> sums;
      for (std::int64_t i = 0; i < line; ++i) {
        const Summed sum = sum_of<Part, members>(parts.data(), at + i);
        sums[i] = Out::narrow(accumulate ? Out::widen(out[at + i]) + sum : sum);
      }
      put_line<past_cache>(out + at, sums.data());
    }
  }

  void blocks(std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; at += block) {
      const std::int64_t n = std::min(block, end - at);
      std::array<Summed, block> sums;
      sum_node<Part>(parts_.data(), static_cast<int>(parts_.size()), at, n, sums.data(), scratch_.data());
      store(sums.data(), out_ + at, n);
    }
  }

  void store(const Summed* sums, Target* out, std::int64_t n) {
    std::array<Target, block> staged;
    for (std::int64_t i = 0; i < n; ++i)
      staged[i] = Out::narrow(sum_.accumulate ? Out::widen(out[i]) + sums[i] : sums[i]);
    put(out, staged.data(), static_cast<std::size_t>(n) * sizeof(Target), past_cache_);
  }

  std::vector<const typename Part::Stored*> parts_;
  Target* out_;
  const TreeSum& sum_;
  const bool past_cache_;
  std::array<Summed, block * max_depth> scratch_;
};

template <class Part, class Out>
void sum_as(const TreeSum& sum) {
  Summation<Part, Out>(sum).run();
}

template <class Part>
void sum_half(const TreeSum& sum) {
  if (sum.out_type == DType::f32) return sum_as<Part, Plain<float>>(sum);
  sum_as<Part, Part>(sum);
}

void sum_float(const TreeSum& sum) {
  if (sum.out_type == DType::bf16) return sum_as<Plain<float>, Half<BFloat16>>(sum);
  if (sum.out_type == DType::f16) return sum_as<Plain<float>, Half<Float16>>(sum);
  sum_as<Plain<float>, Plain<float>>(sum);
}

}  // namespace

void tree_sum(const TreeSum& sum) {
  FORESHARD_EXPECT(!sum.parts.empty(), "a sum needs at least one member");
  FORESHARD_EXPECT(sum.part_type == sum.out_type || sum_type(sum.part_type) == sum.out_type ||
                       sum.part_type == sum_type(sum.out_type),
                   "the parts and the result of a sum have different sum types");
  switch (sum.part_type) {
    case DType::f32:
      return sum_float(sum);
    case DType::f64:
      return sum_as<Plain<double>, Plain<double>>(sum);
    case DType::bf16:
      return sum_half<Half<BFloat16>>(sum);
    case DType::f16:
      return sum_half<Half<Float16>>(sum);
    case DType::i32:
      return sum_as<Plain<std::uint32_t>, Plain<std::uint32_t>>(sum);
    case DType::i64:
      return sum_as<Plain<std::uint64_t>, Plain<std::uint64_t>>(sum);
  }
}

}  // namespace foreshard::comm
