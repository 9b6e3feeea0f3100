#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

std::int64_t checked(std::int32_t token, std::int64_t vocab) {
  FORESHARD_EXPECT(token >= 0 && token < vocab, "token outside the vocabulary");
  return token;
}

template <class T>
void look_up(const Embedding& o, const std::int32_t* tokens, const T* token_table, const T* position_table, T* x) {
  using C = Computed<T>;
  for (std::int64_t r = 0; r < o.rows; ++r) {
    const T* token = token_table + checked(o.token(tokens, r), o.vocab) * o.cols;
    const T* position = position_table ? position_table + (r % o.seq) * o.cols : nullptr;
    for (std::int64_t j = 0; j < o.cols; ++j) {
      x[r * o.cols + j] = position ? static_cast<T>(static_cast<C>(token[j]) + static_cast<C>(position[j])) : token[j];
    }
  }
}

/// Adds row r of dx to row `target(r)` of a table of `table_rows`, and rounds the table once.
template <class T, class Grad, class Target>
void add_rows(const Embedding& o, bool accumulate, const T* dx, std::int64_t table_rows, Grad* table, Target target) {
  using C = Computed<Grad>;
  std::vector<C> sums(static_cast<std::size_t>(table_rows * o.cols));
  if (accumulate) std::transform(table, table + sums.size(), sums.begin(), [](Grad g) { return static_cast<C>(g); });
  for (std::int64_t r = 0; r < o.rows; ++r) {
    for (std::int64_t j = 0; j < o.cols; ++j) sums[target(r) * o.cols + j] += static_cast<C>(dx[r * o.cols + j]);
  }
  std::ranges::transform(sums, table, [](C sum) { return static_cast<Grad>(sum); });
}

template <class T, class Grad>
void add_to_tables(const Embedding& o, bool accumulate, const T* dx, const std::int32_t* tokens, Grad* d_token_table,
                   Grad* d_position_table) {
  if (d_token_table) {
    add_rows(o, accumulate, dx, o.vocab, d_token_table,
             [&](std::int64_t r) { return checked(o.token(tokens, r), o.vocab); });
  }
  if (d_position_table) {
    add_rows(o, accumulate, dx, std::max(o.positions, o.seq), d_position_table,
             [&](std::int64_t r) { return r % o.seq; });
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

}  // namespace foreshard::kernels::reference
