#pragma once
#include "kernels/backend.hpp"

/// The kernels of `Backend` on float pointers; null where an optional operand is absent.
namespace foreshard::kernels::cpu {

void matmul(const Matmul&, const float* a, const float* b, const float* bias, float* c);
void bias_grad(const Rows&, bool accumulate, const float* dy, float* dbias);

void layer_norm(const Rows&, float epsilon, const float* x, const float* residual, const float* gain, const float* bias,
                float* sum, float* y, float* mean, float* rstd);
void layer_norm_backward(const Rows&, bool accumulate, const float* dy, const float* x, const float* gain,
                         const float* mean, const float* rstd, const float* residual_grad, float* dx, float* dgain,
                         float* dbias);

void gelu(std::int64_t count, const float* x, float* y);
void gelu_backward(std::int64_t count, const float* dy, const float* x, float* dx);
void add(std::int64_t count, const float* a, const float* b, float* sum);
void dropout(const Dropout&, const float* x, float* y);

void attention(const Attention&, const float* qkv, float* y, float* log_sum_exp);
void attention_backward(const Attention&, const float* dy, const float* qkv, const float* y, const float* log_sum_exp,
                        float* dqkv);

void embedding(const Embedding&, const std::int32_t* tokens, const float* token_table, const float* position_table,
               float* x);
void embedding_backward(const Embedding&, bool accumulate, const float* dx, const std::int32_t* tokens,
                        float* d_token_table, float* d_position_table);

void cross_entropy(const Rows&, const float* logits, const std::int32_t* targets, double* loss, float* log_sum_exp);
void cross_entropy_backward(const Rows&, const float* logits, const std::int32_t* targets, const float* log_sum_exp,
                            float* dlogits);

void add_squares(std::int64_t count, const float* x, std::span<std::int64_t, ExactSum::words> sum);
void adamw(const AdamW&, const float* grad, float* parameter, float* first_moment, float* second_moment);

}  // namespace foreshard::kernels::cpu
