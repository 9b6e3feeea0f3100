#pragma once

namespace foreshard {

/// Words (i64) of an exact, order-independent sum: see kernels::ExactSum.
constexpr int exact_sum_words = 24;

}  // namespace foreshard
