#pragma once
#include <bit>
#include <cstdint>

#include "base/random.hpp"

namespace foreshard::kernels {

/// x as a bf16 can hold it: 16 random bits are added to those that it has no room for, which are then cut off. Of the
/// two neighbours of x one is taken, with a probability by which x is kept on average. What a bf16 can hold is not
/// changed, nor are infinities and NaN; beyond the largest finite bf16 the upper neighbour is infinite. As torchao's
/// `bf16_stochastic_round`; Zamirai et al. 2020 (arXiv 2010.06192), section 4.
constexpr float rounded_stochastically(float x, std::uint32_t random) {
  const std::uint32_t moved = std::bit_cast<std::uint32_t>(x) + (random & 0xffffU);
  return x == x ? std::bit_cast<float>(moved & 0xffff0000U) : x;
}

/// How an update rounds parameters of 16 bits when it stores them: to nearest even, or stochastically. Random bits are
/// those of an element of a parameter in a step, whoever updates it and with however many others.
struct Rounding {
  bool stochastic = false;
  std::uint64_t key = 0;     ///< differs by step
  std::uint64_t stream = 0;  ///< differs by parameter
  std::uint64_t first = 0;   ///< the place of the update's first element in the whole parameter

  static constexpr std::uint64_t halves = 8;  ///< of one call of Philox

  /// For element e = first + i of the parameter: of philox(key, stream, e / 8) the half e mod 8, low halves of words
  /// before high ones.
  constexpr std::uint32_t random(std::uint64_t i) const {
    const std::uint64_t e = first + i;
    return philox(key, stream, e / halves)[e % halves / 2] >> (e % 2 * 16) & 0xffffU;
  }
};

}  // namespace foreshard::kernels
