#pragma once
#include "kernels/backend.hpp"

/// The kernels of `Backend` on typed pointers, for float and double; null where an optional operand is absent.
namespace foreshard::kernels::reference {

template <class T>
void matmul(const Matmul&, const T* a, const T* b, const T* bias, T* c);
template <class T>
void bias_grad(const Rows&, bool accumulate, const T* dy, T* dbias);

template <class T>
void layer_norm(const Rows&, float epsilon, const T* x, const T* residual, const T* gain, const T* bias, T* sum, T* y,
                T* mean, T* rstd);
template <class T>
void layer_norm_backward(const Rows&, bool accumulate, const T* dy, const T* x, const T* gain, const T* mean,
                         const T* rstd, const T* residual_grad, T* dx, T* dgain, T* dbias);

template <class T>
void gelu(std::int64_t count, const T* x, T* y);
template <class T>
void gelu_backward(std::int64_t count, const T* dy, const T* x, T* dx);
template <class T>
void add(std::int64_t count, const T* a, const T* b, T* sum);
template <class T>
void dropout(const Dropout&, const T* x, T* y);

template <class T>
void attention(const Attention&, const T* qkv, T* y, T* log_sum_exp);
template <class T>
void attention_backward(const Attention&, const T* dy, const T* qkv, const T* y, const T* log_sum_exp, T* dqkv);

template <class T>
void embedding(const Embedding&, const std::int32_t* tokens, const T* token_table, const T* position_table, T* x);
template <class T>
void embedding_backward(const Embedding&, bool accumulate, const T* dx, const std::int32_t* tokens, T* d_token_table,
                        T* d_position_table);

template <class T>
void cross_entropy(const Rows&, const T* logits, const std::int32_t* targets, double* loss, T* log_sum_exp);
template <class T>
void cross_entropy_backward(const Rows&, const T* logits, const std::int32_t* targets, const T* log_sum_exp,
                            T* dlogits);

template <class T>
void add_squares(std::int64_t count, const T* x, std::span<std::int64_t, ExactSum::words> sum);
template <class T>
void adamw(const AdamW&, const T* grad, T* parameter, T* first_moment, T* second_moment);

}  // namespace foreshard::kernels::reference
