#pragma once
#include <cstdint>
#include <span>

#include "base/dtype.hpp"

namespace foreshard::comm {

/// The type in which sums of `type` are made: f32 for bf16 and f16, otherwise `type` itself.
constexpr DType sum_type(DType type) { return type == DType::bf16 || type == DType::f16 ? DType::f32 : type; }

/// One element-wise sum over members.
struct TreeSum {
  std::span<const void* const> parts;  ///< member m's `count` elements, at least one member
  DType part_type = DType::f32;
  void* out =
      nullptr;  ///< `count` elements; apart from all parts, or exactly one of them (same type, not accumulating)
  DType out_type = DType::f32;  ///< has the same sum type as `part_type`
  std::int64_t count = 0;
  bool accumulate = false;
  bool past_cache = false;  ///< for results that would not stay there (stream.hpp); no matter when accumulating
};

/// out[i] = (accumulate ? out[i] : 0) + Σ_m parts[m][i], along the canonical pairwise tree: the sum of one member is
/// its value, the sum of n > 1 members is the sum of the first s plus the sum of the rest, s the largest power of two
/// below n. So members are first summed in aligned groups of powers of two, and summing aligned groups first and then
/// their results gives the same bits. Made in the sum type and rounded once, to nearest even; integers wrap. Every
/// transport uses this function.
void tree_sum(const TreeSum& sum);

}  // namespace foreshard::comm
