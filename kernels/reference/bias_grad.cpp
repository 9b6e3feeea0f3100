#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

template <class T, class Grad>
void sum_columns(const Rows& o, bool accumulate, const T* dy, Grad* dbias) {
  for (std::int64_t j = 0; j < o.cols; ++j) {
    double sum = accumulate ? static_cast<double>(dbias[j]) : 0.0;
    for (std::int64_t i = 0; i < o.rows; ++i) sum += static_cast<double>(dy[i * o.cols + j]);
    dbias[j] = static_cast<Grad>(sum);
  }
}

}  // namespace

void bias_grad(const Rows& o, bool accumulate, Const dy, Mut dbias) {
  by_number(dy.dtype, [&]<class T>(T) {
    by_result_type<T>(dbias.dtype, [&]<class Grad>(Grad) { sum_columns(o, accumulate, as<T>(dy), as<Grad>(dbias)); });
  });
}

}  // namespace foreshard::kernels::reference
