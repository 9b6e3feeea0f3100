#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {

template <class T>
void bias_grad(const Rows& o, bool accumulate, const T* dy, T* dbias) {
  for (std::int64_t j = 0; j < o.cols; ++j) {
    double sum = accumulate ? dbias[j] : 0.0;
    for (std::int64_t i = 0; i < o.rows; ++i) sum += static_cast<double>(dy[i * o.cols + j]);
    dbias[j] = static_cast<T>(sum);
  }
}

template void bias_grad(const Rows&, bool, const float*, float*);
template void bias_grad(const Rows&, bool, const double*, double*);

}  // namespace foreshard::kernels::reference
