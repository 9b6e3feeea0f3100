#pragma once
#include <cstdint>
#include <span>

namespace foreshard::sim {

/// `count` users of a resource, each of which would use `amount` of it at full speed.
struct Need {
  std::int64_t amount = 0;
  int count = 1;
};

/// What a user may have at most, such that no more than `capacity` is used and who needs less leaves the rest to the
/// others (max-min fairness): the level with Σ count·min(amount, level) = capacity, at least 1; the largest amount if
/// all needs fit. Reorders `needs`.
std::int64_t fair_level(std::int64_t capacity, std::span<Need> needs);

}  // namespace foreshard::sim
