#pragma once
#include <cstdint>

namespace foreshard::comm {

/// A half-open range of elements.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t length() const { return end - begin; }
};

/// The part of `count` elements that member `index` of `size` reduces for all: [⌊i·count/P⌋, ⌊(i+1)·count/P⌋). Cutting
/// the elements first into chunks whose lengths are multiples of `size` leaves the total length of a member's parts the
/// same.
constexpr Range part_of(std::int64_t count, int index, int size) {
  return {count / size * index + count % size * index / size,
          count / size * (index + 1) + count % size * (index + 1) / size};
}

}  // namespace foreshard::comm
