#include "comm/tree_sum.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.hpp"
#include "comm/numbers.hpp"
#include "comm/stream.hpp"

// Exact aliases are element-wise, so no iteration depends on another.
#define FORESHARD_INDEPENDENT _Pragma("GCC ivdep")

namespace foreshard::comm {

namespace {

constexpr std::int64_t block = 1024;  // elements: a block, its operands and its scratch stay in the first-level cache
constexpr int max_depth = 24;

template <class Part>
class BlockTree {
 public:
  using Stored = typename Part::Stored;
  using Summed = typename Part::Summed;

  explicit BlockTree(std::span<const void* const> parts) : parts_(parts) {}

  void sum(std::int64_t at, std::int64_t n, Summed* out) {
    node(0, static_cast<int>(parts_.size()), at, n, out, scratch_.data());
  }

 private:
  const Stored* part(int member, std::int64_t at) const { return static_cast<const Stored*>(parts_[member]) + at; }

  void node(int first, int members, std::int64_t at, std::int64_t n, Summed* out, Summed* scratch) {
    switch (members) {
      case 1:
        return one(part(first, at), n, out);
      case 2:
        return two(part(first, at), part(first + 1, at), n, out);
      case 4:
        return four(part(first, at), part(first + 1, at), part(first + 2, at), part(first + 3, at), n, out);
      default:
        return inner(first, members, at, n, out, scratch);
    }
  }

  void inner(int first, int members, std::int64_t at, std::int64_t n, Summed* out, Summed* scratch) {
    const int left = static_cast<int>(std::bit_floor(static_cast<unsigned>(members - 1)));
    node(first, left, at, n, out, scratch);
    node(first + left, members - left, at, n, scratch, scratch + block);
    FORESHARD_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) out[i] += scratch[i];
  }

  static void one(const Stored* a, std::int64_t n, Summed* out) {
    FORESHARD_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) out[i] = Part::widen(a[i]);
  }
  static void two(const Stored* a, const Stored* b, std::int64_t n, Summed* out) {
    FORESHARD_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) out[i] = Part::widen(a[i]) + Part::widen(b[i]);
  }
  static void four(const Stored* a, const Stored* b, const Stored* c, const Stored* d, std::int64_t n, Summed* out) {
    FORESHARD_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = (Part::widen(a[i]) + Part::widen(b[i])) + (Part::widen(c[i]) + Part::widen(d[i]));
    }
  }

  std::span<const void* const> parts_;
  std::array<Summed, block * max_depth> scratch_;
};

template <class Out>
void store(const typename Out::Summed* sums, typename Out::Stored* out, std::int64_t n, bool accumulate,
           bool past_cache) {
  std::array<typename Out::Stored, block> staged;
  if (accumulate) {
    for (std::int64_t i = 0; i < n; ++i) staged[i] = Out::narrow(Out::widen(out[i]) + sums[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) staged[i] = Out::narrow(sums[i]);
  }
  put(out, staged.data(), static_cast<std::size_t>(n) * sizeof(typename Out::Stored), past_cache);
}

template <class Part, class Out>
void sum_blocks(const TreeSum& sum) {
  BlockTree<Part> tree(sum.parts);
  std::array<typename Part::Summed, block> sums;
  auto* out = static_cast<typename Out::Stored*>(sum.out);
  for (std::int64_t at = 0; at < sum.count; at += block) {
    const std::int64_t n = std::min(block, sum.count - at);
    tree.sum(at, n, sums.data());
    store<Out>(sums.data(), out + at, n, sum.accumulate, sum.past_cache);
  }
  if (sum.past_cache) finish_streams();
}

template <class Part>
void sum_half(const TreeSum& sum) {
  if (sum.out_type == DType::f32) return sum_blocks<Part, Plain<float>>(sum);
  sum_blocks<Part, Part>(sum);
}

void sum_float(const TreeSum& sum) {
  if (sum.out_type == DType::bf16) return sum_blocks<Plain<float>, BFloat16>(sum);
  if (sum.out_type == DType::f16) return sum_blocks<Plain<float>, Float16>(sum);
  sum_blocks<Plain<float>, Plain<float>>(sum);
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
      return sum_blocks<Plain<double>, Plain<double>>(sum);
    case DType::bf16:
      return sum_half<BFloat16>(sum);
    case DType::f16:
      return sum_half<Float16>(sum);
    case DType::i32:
      return sum_blocks<Plain<std::uint32_t>, Plain<std::uint32_t>>(sum);
    case DType::i64:
      return sum_blocks<Plain<std::uint64_t>, Plain<std::uint64_t>>(sum);
  }
}

}  // namespace foreshard::comm
