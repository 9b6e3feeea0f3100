#include <algorithm>

#include "base/error.hpp"
#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

std::int64_t checked(std::int32_t token, std::int64_t vocab) {
  FORESHARD_EXPECT(token >= 0 && token < vocab, "token outside the vocabulary");
  return token;
}

}  // namespace

template <class T>
void embedding(const Embedding& o, const std::int32_t* tokens, const T* token_table, const T* position_table, T* x) {
  for (std::int64_t r = 0; r < o.rows; ++r) {
    const T* token = token_table + checked(tokens[r], o.vocab) * o.cols;
    const T* position = position_table + (r % o.seq) * o.cols;
    for (std::int64_t j = 0; j < o.cols; ++j) x[r * o.cols + j] = token[j] + position[j];
  }
}

template <class T>
void embedding_backward(const Embedding& o, bool accumulate, const T* dx, const std::int32_t* tokens, T* d_token_table,
                        T* d_position_table) {
  if (d_token_table && !accumulate) std::fill_n(d_token_table, o.vocab * o.cols, T{0});
  if (d_position_table && !accumulate) std::fill_n(d_position_table, std::max(o.positions, o.seq) * o.cols, T{0});
  for (std::int64_t r = 0; r < o.rows; ++r) {
    const std::int64_t token = checked(tokens[r], o.vocab), position = r % o.seq;
    for (std::int64_t j = 0; j < o.cols; ++j) {
      if (d_token_table) d_token_table[token * o.cols + j] += dx[r * o.cols + j];
      if (d_position_table) d_position_table[position * o.cols + j] += dx[r * o.cols + j];
    }
  }
}

template void embedding(const Embedding&, const std::int32_t*, const float*, const float*, float*);
template void embedding(const Embedding&, const std::int32_t*, const double*, const double*, double*);
template void embedding_backward(const Embedding&, bool, const float*, const std::int32_t*, float*, float*);
template void embedding_backward(const Embedding&, bool, const double*, const std::int32_t*, double*, double*);

}  // namespace foreshard::kernels::reference
