#include "train/row_order.hpp"

#include "base/error.hpp"
#include "train/permutation.hpp"

namespace foreshard::train {

std::int64_t RowOrder::row(std::int64_t step, std::int64_t index) const {
  FORESHARD_EXPECT(step >= 1, "steps are counted from 1");
  const std::int64_t position = (step - 1) * of_step() + options_.rank * of_rank() + index;
  const std::int64_t epoch = position / rows_, place = position % rows_;
  return options_.shuffle ? permuted(place, rows_, options_.seed, static_cast<std::uint64_t>(epoch)) : place;
}

}  // namespace foreshard::train
