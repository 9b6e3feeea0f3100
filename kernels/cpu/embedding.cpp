#include <algorithm>

#include "base/error.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

Vec plus(Vec u, Vec v) { return u + v; }

void expect_in_vocabulary(std::int64_t rows, const std::int32_t* tokens, std::int64_t vocab) {
  const bool valid = std::all_of(tokens, tokens + rows, [=](std::int32_t t) { return t >= 0 && t < vocab; });
  FORESHARD_EXPECT(valid, "a token is outside the vocabulary");
}

void clear(std::int64_t count, float* table) {
  share(count, grain_elements,
        [=](std::int64_t begin, std::int64_t end) { std::fill(table + begin, table + end, 0.0F); });
}

/// Adds each row of dx to the row of the table that `target` names, in order of rows.
template <class Target>
void add_rows(const Embedding& o, const float* dx, float* table, Target target) {
  share(o.cols, 4 * lanes, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = 0; r < o.rows; ++r) {
      float* row = table + target(r) * o.cols + begin;
      map(end - begin, row, plus, row, dx + r * o.cols + begin);
    }
  });
}

}  // namespace

void embedding(const Embedding& o, const std::int32_t* tokens, const float* token_table, const float* position_table,
               float* x) {
  expect_in_vocabulary(o.rows, tokens, o.vocab);
  share(o.rows, grain_rows(o.cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      map(o.cols, x + r * o.cols, plus, token_table + tokens[r] * o.cols, position_table + r % o.seq * o.cols);
    }
  });
}

void embedding_backward(const Embedding& o, bool accumulate, const float* dx, const std::int32_t* tokens,
                        float* d_token_table, float* d_position_table) {
  expect_in_vocabulary(o.rows, tokens, o.vocab);
  if (d_token_table) {
    if (!accumulate) clear(o.vocab * o.cols, d_token_table);
    add_rows(o, dx, d_token_table, [=](std::int64_t row) { return tokens[row]; });
  }
  if (d_position_table) {
    if (!accumulate) clear(std::max(o.positions, o.seq) * o.cols, d_position_table);
    add_rows(o, dx, d_position_table, [=](std::int64_t row) { return row % o.seq; });
  }
}

}  // namespace foreshard::kernels::cpu
