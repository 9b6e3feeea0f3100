#include <algorithm>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

void expect_in_vocabulary(const Embedding& o, const std::int32_t* tokens) {
  const std::int32_t least = o.shifted ? -1 : 0;
  const bool valid = std::all_of(tokens, tokens + o.rows, [=](std::int32_t t) { return t >= least && t < o.vocab; });
  FORESHARD_EXPECT(valid, "a token is outside the vocabulary");
}

template <class T>
void clear(std::int64_t count, T* table) {
  share(count, grain_elements,
        [=](std::int64_t begin, std::int64_t end) { std::fill(table + begin, table + end, T{}); });
}

/// Adds each row of dx to the row of the table that `target` names, in order of rows.
template <class T, class Target>
void add_rows(const Embedding& o, const T* dx, float* table, Target target) {
  share(o.cols, 4 * lanes, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = 0; r < o.rows; ++r) {
      float* row = table + target(r) * o.cols + begin;
      map(end - begin, row, plus, row, dx + r * o.cols + begin);
    }
  });
}

/// The same for a table of halves: the rows that go to one row of it are summed in float, and rounded once.
template <class T, class Half, class Target>
void add_rows(const Embedding& o, const T* dx, Half* table, Target target) {
  std::vector<std::int64_t> by_target(static_cast<std::size_t>(o.rows));
  std::iota(by_target.begin(), by_target.end(), std::int64_t{0});
  std::ranges::stable_sort(by_target, {}, target);
  share(o.cols, strip_cols, [=, &o, &by_target](std::int64_t first, std::int64_t end) {
    for (std::int64_t begin = first; begin < end; begin += strip_cols) {
      const std::int64_t n = std::min(strip_cols, end - begin);
      for (auto row = by_target.begin(); row != by_target.end();) {
        const std::int64_t shared = target(*row);
        Half* to = table + shared * o.cols + begin;
        float sums[strip_cols];
        map(n, sums, same, to);
        for (; row != by_target.end() && target(*row) == shared; ++row)
          map(n, sums, plus, sums, dx + *row * o.cols + begin);
        map(n, to, same, sums);
      }
    }
  });
}

template <class T>
void look_up(const Embedding& o, const std::int32_t* tokens, const T* token_table, const T* position_table, T* x) {
  expect_in_vocabulary(o, tokens);
  share(o.rows, grain_rows(o.cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* token = token_table + o.token(tokens, r) * o.cols;
      if (position_table)
        map(o.cols, x + r * o.cols, plus, token, position_table + r % o.seq * o.cols);
      else
        std::copy_n(token, o.cols, x + r * o.cols);
    }
  });
}

template <class T, class Grad>
void add_to_tables(const Embedding& o, bool accumulate, const T* dx, const std::int32_t* tokens, Grad* d_token_table,
                   Grad* d_position_table) {
  expect_in_vocabulary(o, tokens);
  if (d_token_table) {
    if (!accumulate) clear(o.vocab * o.cols, d_token_table);
    add_rows(o, dx, d_token_table, [=, &o](std::int64_t row) { return o.token(tokens, row); });
  }
  if (d_position_table) {
    if (!accumulate) clear(std::max(o.positions, o.seq) * o.cols, d_position_table);
    add_rows(o, dx, d_position_table, [=](std::int64_t row) { return row % o.seq; });
  }
}

}  // namespace

void embedding(const Embedding& o, Const tokens, Const token_table, Const position_table, Mut x) {
  by_number(x.dtype, [&]<class T>(T) {
    look_up(o, as<std::int32_t>(tokens), as<T>(token_table), as<T>(position_table), as<T>(x));
  });
}

void embedding_backward(const Embedding& o, bool accumulate, Const dx, Const tokens, Mut d_token_table,
                        Mut d_position_table) {
  const DType grad = d_token_table.data ? d_token_table.dtype : d_position_table.dtype;
  by_number(dx.dtype, [&]<class T>(T) {
    by_result_type<T>(grad, [&]<class Grad>(Grad) {
      add_to_tables(o, accumulate, as<T>(dx), as<std::int32_t>(tokens), as<Grad>(d_token_table),
                    as<Grad>(d_position_table));
    });
  });
}

}  // namespace foreshard::kernels::cpu
