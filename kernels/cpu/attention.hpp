#pragma once
#include "kernels/cpu/bf16_pair.hpp"
#include "kernels/cpu/kernels.hpp"

namespace foreshard::kernels::cpu {

/// The route is that of bf16 operands: in pairs, or widened as all others are.
void attention(const Attention&, MatmulRoute, Const q, Const k, Const v, Const bias, Mut y, Mut log_sum_exp);
void attention_backward(const Attention&, MatmulRoute, Const dy, Const q, Const k, Const v, Const bias, Const y,
                        Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dbias);

/// Calls f with a value of the operands' type and one of the words that they are computed in.
template <class F>
void by_words(DType type, MatmulRoute route, F f) {
  if (type == DType::bf16 && route == MatmulRoute::native) return f(BFloat16{}, BFloat16Pair{});
  by_number(type, [&]<class T>(T number) { f(number, float{}); });
}

}  // namespace foreshard::kernels::cpu
