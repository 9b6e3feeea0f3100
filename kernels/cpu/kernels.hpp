#pragma once
#include "kernels/operand.hpp"

/// The kernels of `Backend`, in float, bf16 and f16; computed in float.
namespace foreshard::kernels::cpu {

/// Calls f with a value of the number type that `type` names.
template <class F>
void by_number(DType type, F f) {
  by_type<float, BFloat16, Float16>(type, f);
}

void bias_grad(const Rows&, bool accumulate, Const dy, Mut dbias);

void layer_norm(const Rows&, float epsilon, Const x, Const residual, Const gain, Const bias, Mut sum, Mut y, Mut mean,
                Mut rstd);
void layer_norm_backward(const Rows&, bool accumulate, Const dy, Const x, Const gain, Const mean, Const rstd,
                         Const residual_grad, Mut dx, Mut dgain, Mut dbias);

void rms_norm(const Rows&, float epsilon, Const x, Const residual, Const gain, Mut sum, Mut y, Mut rstd);
void rms_norm_backward(const Rows&, bool accumulate, Const dy, Const x, Const gain, Const rstd, Const residual_grad,
                       Mut dx, Mut dgain);

void gelu(std::int64_t count, Const x, Mut y);
void gelu_backward(std::int64_t count, Const dy, Const x, Mut dx);
void gelu_exact(std::int64_t count, Const x, Mut y);
void gelu_exact_backward(std::int64_t count, Const dy, Const x, Mut dx);
void swiglu(std::int64_t count, Const gate, Const up, Mut y);
void swiglu_backward(std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup);
void geglu(std::int64_t count, Const gate, Const up, Mut y);
void geglu_backward(std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup);
void relu(std::int64_t count, Const x, Mut y);
void relu_backward(std::int64_t count, Const dy, Const y, Mut dx);
void scale(std::int64_t count, double factor, Const x, Mut y);
void rotary(const Rotary&, Const x, Mut y);
void add(std::int64_t count, Const a, Const b, Mut sum);
void cast(std::int64_t count, bool accumulate, Const from, Mut to);
void dropout(const Dropout&, Const x, Mut y);

void reattention(const Reattention&, Const q, Const k, Const v, Const mixing, Const gain, Const bias, Mut y,
                 Mut log_sum_exp);
void reattention_backward(const Reattention&, bool accumulate, Const dy, Const q, Const k, Const v, Const mixing,
                          Const gain, Const bias, Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dmixing, Mut dgain,
                          Mut dbias);

void embedding(const Embedding&, Const tokens, Const token_table, Const position_table, Mut x);
void embedding_backward(const Embedding&, bool accumulate, Const dx, Const tokens, Mut d_token_table,
                        Mut d_position_table);

void relative_bias(const RelativeBias&, Const table, Mut bias);
void relative_bias_backward(const RelativeBias&, bool accumulate, Const dbias, Mut dtable);
void image_tokens(const ImageTokens&, Const patches, Const class_token, Const positions, Mut x);
void image_tokens_backward(const ImageTokens&, bool accumulate, Const dx, Mut dpatches, Mut dclass_token,
                           Mut dpositions);
void first_token(const ImageTokens&, Const x, Mut y);
void first_token_backward(const ImageTokens&, Const dy, Mut dx);

void cross_entropy(const Rows&, Const logits, Const targets, Mut loss, Mut log_sum_exp);
void cross_entropy_backward(const Rows&, float scale, Const logits, Const targets, Const log_sum_exp, Mut dlogits);

void add_powers(int power, std::int64_t count, Const x, std::span<std::int64_t, ExactSum::words> sum);
void max_magnitude(std::int64_t count, Const x, std::int64_t& largest);
void adamw(const Update&, Const grad, Mut parameter, Mut first_moment, Mut second_moment);
void adam(const Update&, Const grad, Mut parameter, Mut first_moment, Mut second_moment);
void sgd(const Update&, Const grad, Mut parameter, Mut velocity);
void lion(const Update&, Const grad, Mut parameter, Mut moment);

}  // namespace foreshard::kernels::cpu
