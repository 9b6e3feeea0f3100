#pragma once
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/queue.hpp"

/// The kernels of `Kernels`, in float, bf16 and f16; computed in float. A null step means: as the operands say.
namespace foreshard::kernels::cuda {

void bias_grad(const Queue&, const Rows&, bool accumulate, Const dy, Mut dbias);

void layer_norm(const Queue&, const Rows&, float epsilon, Const x, Const residual, Const gain, Const bias, Mut sum,
                Mut y, Mut mean, Mut rstd);
void layer_norm_backward(const Queue&, const Rows&, bool accumulate, Const dy, Const x, Const gain, Const mean,
                         Const rstd, Const residual_grad, Mut dx, Mut dgain, Mut dbias);

void rms_norm(const Queue&, const Rows&, float epsilon, Const x, Const residual, Const gain, Mut sum, Mut y, Mut rstd);
void rms_norm_backward(const Queue&, const Rows&, bool accumulate, Const dy, Const x, Const gain, Const rstd,
                       Const residual_grad, Mut dx, Mut dgain);

void gelu(const Queue&, std::int64_t count, Const x, Mut y);
void gelu_backward(const Queue&, std::int64_t count, Const dy, Const x, Mut dx);
void gelu_exact(const Queue&, std::int64_t count, Const x, Mut y);
void gelu_exact_backward(const Queue&, std::int64_t count, Const dy, Const x, Mut dx);
void swiglu(const Queue&, std::int64_t count, Const gate, Const up, Mut y);
void swiglu_backward(const Queue&, std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup);
void geglu(const Queue&, std::int64_t count, Const gate, Const up, Mut y);
void geglu_backward(const Queue&, std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup);
void relu(const Queue&, std::int64_t count, Const x, Mut y);
void relu_backward(const Queue&, std::int64_t count, Const dy, Const y, Mut dx);
void scale(const Queue&, std::int64_t count, double factor, Const x, Mut y);
void rotary(const Queue&, const Rotary&, Const x, Mut y);
void add(const Queue&, std::int64_t count, Const a, Const b, Mut sum);
void cast(const Queue&, std::int64_t count, bool accumulate, Const from, Mut to);
void dropout(const Queue&, const Step*, const Dropout&, Const x, Mut y);

void attention(const Queue&, const Attention&, Const q, Const k, Const v, Const bias, Mut y, Mut log_sum_exp);
void attention_backward(const Queue&, const Attention&, Const dy, Const q, Const k, Const v, Const bias, Const y,
                        Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dbias);
void reattention(const Queue&, const Reattention&, Const q, Const k, Const v, Const mixing, Const gain, Const bias,
                 Mut y, Mut log_sum_exp);
void reattention_backward(const Queue&, const Reattention&, bool accumulate, Const dy, Const q, Const k, Const v,
                          Const mixing, Const gain, Const bias, Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dmixing,
                          Mut dgain, Mut dbias);
void relative_bias(const Queue&, const RelativeBias&, Const table, Mut bias);
void relative_bias_backward(const Queue&, const RelativeBias&, bool accumulate, Const dbias, Mut dtable);
void image_tokens(const Queue&, const ImageTokens&, Const patches, Const class_token, Const positions, Mut x);
void image_tokens_backward(const Queue&, const ImageTokens&, bool accumulate, Const dx, Mut dpatches, Mut dclass_token,
                           Mut dpositions);
void first_token(const Queue&, const ImageTokens&, Const x, Mut y);
void first_token_backward(const Queue&, const ImageTokens&, Const dy, Mut dx);

void embedding(const Queue&, const Embedding&, Const tokens, Const token_table, Const position_table, Mut x);
void embedding_backward(const Queue&, const Embedding&, bool accumulate, Const dx, Const tokens, Mut d_token_table,
                        Mut d_position_table);

void cross_entropy(const Queue&, Step*, const Rows&, Const logits, Const targets, Mut loss, Mut log_sum_exp);
void cross_entropy_backward(const Queue&, const Step*, const Rows&, float scale, Const logits, Const targets,
                            Const log_sum_exp, Mut dlogits);

void add_powers(const Queue&, int power, std::int64_t count, Const x, std::int64_t* words);
void max_magnitude(const Queue&, std::int64_t count, Const x, std::int64_t* largest);

/// Of one parameter, with what the operands say.
void update(const Queue&, Optimizer, const Update&, Const grad, Mut parameter, Mut first, Mut second);
/// Of a shard's parts, with what the step says.
void update(const Queue&, Optimizer, const Step*, const Rule* rules, const Part* parts, std::int64_t part_count,
            std::int64_t count, float norm_power, const std::int64_t* norm_words, std::int64_t word_count,
            const double* loss, Const grad, Mut parameter, Mut first, Mut second);

void load_micro_batch(const Queue&, const Step*, std::int64_t count, Const staged, Mut to);
void copy(const Queue&, const void* from, void* to, std::int64_t bytes);
void zero(const Queue&, void* to, std::int64_t bytes);
void advance(const Queue&, Step*);
void mark(const Queue&, std::uint64_t* host_mapped, std::uint64_t value);

}  // namespace foreshard::kernels::cuda
