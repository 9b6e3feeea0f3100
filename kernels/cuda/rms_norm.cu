#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/norm_backward.hpp"

namespace foreshard::kernels::cuda {

void rms_norm(const Queue& queue, const Rows& o, float epsilon, Const x, Const residual, Const gain, Mut sum, Mut y,
              Mut rstd) {
  by_number(y.dtype, [&]<class T>(T) {
    normalize<false>(
        queue, NormForward<Device<T>>{o, epsilon, elements<T>(x), elements<T>(residual), elements<T>(gain), nullptr,
                                      elements<T>(sum), elements<T>(y), nullptr, elements<float>(rstd)});
  });
}

void rms_norm_backward(const Queue& queue, const Rows& o, bool accumulate, Const dy, Const x, Const gain, Const rstd,
                       Const residual_grad, Mut dx, Mut dgain) {
  by_number(dy.dtype, [&]<class T>(T) {
    const NormBackward<Device<T>> a{o,
                                    elements<T>(dy),
                                    elements<T>(x),
                                    elements<T>(gain),
                                    nullptr,
                                    elements<float>(rstd),
                                    elements<T>(residual_grad),
                                    elements<T>(dx)};
    by_result_type<T>(type_of_present(dgain, {}, dy.dtype), [&]<class Grad>(Grad) {
      differentiate_norm_rows<false>(queue, a, accumulate, elements<Grad>(dgain), static_cast<Device<Grad>*>(nullptr));
    });
  });
}

}  // namespace foreshard::kernels::cuda
