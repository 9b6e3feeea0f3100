#pragma once
#include <cstdint>

namespace foreshard::model {

/// Pairs of a query and a key that it sees in causal attention over `seq` tokens: each query sees itself and those
/// before it, the last `window` of these if that is not 0. With w = min(window, seq) the first w queries have
/// w·(w + 1)/2 pairs, and each of the others w.
constexpr double causal_pairs(std::int64_t seq, std::int64_t window) {
  const auto all = static_cast<double>(seq);
  if (window <= 0 || window >= seq) return all * (all + 1) / 2;
  const auto w = static_cast<double>(window);
  return w * (w + 1) / 2 + (all - w) * w;
}

/// The length of which causal attention without a window has as many pairs a query, its diagonal left out: `seq` itself
/// without one, up to twice the window with one.
constexpr double equal_causal_length(std::int64_t seq, std::int64_t window) {
  if (window <= 0 || window >= seq) return static_cast<double>(seq);
  return 2 * causal_pairs(seq, window) / static_cast<double>(seq) - 1;
}

/// Keys that a query may see by the window alone, the causal mask apart.
constexpr std::int64_t attended_length(std::int64_t seq, std::int64_t window) {
  return window > 0 && window < seq ? window : seq;
}

}  // namespace foreshard::model
