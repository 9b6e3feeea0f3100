#pragma once
#include <algorithm>

#include "kernels/backend.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {

/// Sums over rows for gradients of what all rows share, by blocks of rows whatever the team: the same bits for any
/// number of threads. Lies in the thread's scratch; one at a time.
class ColumnSums {
 public:
  /// Calls add_row(i, sums) for every row; it adds the row's terms to `vectors` vectors of o.cols sums.
  template <class AddRow>
  ColumnSums(const Rows& o, std::int64_t vectors, AddRow add_row)
      : cols_(o.cols), stride_(vectors * o.cols), blocks_((o.rows + block_rows - 1) / block_rows) {
    parts_ = thread_scratch().of<float>(static_cast<std::size_t>(blocks_ * stride_));
    share(blocks_, (grain_rows(o.cols) + block_rows - 1) / block_rows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        float* part = parts_ + b * stride_;
        std::fill_n(part, stride_, 0.0F);
        const std::int64_t bottom = std::min(o.rows, (b + 1) * block_rows);
        for (std::int64_t i = b * block_rows; i < bottom; ++i) add_row(i, part);
      }
    });
  }

  /// to[j] = (accumulate ? to[j] : 0) + column j of that vector.
  template <class To>
  void write(std::int64_t vector, bool accumulate, To* to) const {
    const float* part = parts_ + vector * cols_;
    for (std::int64_t j = 0; j < cols_; j += strip_cols) {
      const std::int64_t width = std::min(strip_cols, cols_ - j);
      float total[strip_cols] = {};
      if (accumulate) map(width, total, same, to + j);
      for (std::int64_t b = 0; b < blocks_; ++b) map(width, total, plus, total, part + b * stride_ + j);
      map(width, to + j, same, total);
    }
  }

 private:
  static constexpr std::int64_t block_rows = 32;

  std::int64_t cols_, stride_, blocks_;
  float* parts_;
};

}  // namespace foreshard::kernels::cpu
