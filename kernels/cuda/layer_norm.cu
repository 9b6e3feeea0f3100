#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/norm_backward.hpp"

namespace foreshard::kernels::cuda {

void layer_norm(const Queue& queue, const Rows& o, float epsilon, Const x, Const residual, Const gain, Const bias,
                Mut sum, Mut y, Mut mean, Mut rstd) {
  by_number(y.dtype, [&]<class T>(T) {
    normalize<true>(queue, NormForward<Device<T>>{o, epsilon, elements<T>(x), elements<T>(residual), elements<T>(gain),
                                                  elements<T>(bias), elements<T>(sum), elements<T>(y),
                                                  elements<float>(mean), elements<float>(rstd)});
  });
}

void layer_norm_backward(const Queue& queue, const Rows& o, bool accumulate, Const dy, Const x, Const gain, Const mean,
                         Const rstd, Const residual_grad, Mut dx, Mut dgain, Mut dbias) {
  by_number(dy.dtype, [&]<class T>(T) {
    const NormBackward<Device<T>> a{o,
                                    elements<T>(dy),
                                    elements<T>(x),
                                    elements<T>(gain),
                                    elements<float>(mean),
                                    elements<float>(rstd),
                                    elements<T>(residual_grad),
                                    elements<T>(dx)};
    by_result_type<T>(type_of_present(dgain, dbias, dy.dtype), [&]<class Grad>(Grad) {
      differentiate_norm_rows<true>(queue, a, accumulate, elements<Grad>(dgain), elements<Grad>(dbias));
    });
  });
}

}  // namespace foreshard::kernels::cuda
