#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels {
namespace {

class Reference final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }

  void matmul(const Matmul& o, Const a, Const b, Const bias, Mut c) override { reference::matmul(o, a, b, bias, c); }
  void bias_grad(const Rows& o, bool accumulate, Const dy, Mut dbias) override {
    reference::bias_grad(o, accumulate, dy, dbias);
  }
  void layer_norm(const Rows& o, float epsilon, Const x, Const residual, Const gain, Const bias, Mut sum, Mut y,
                  Mut mean, Mut rstd) override {
    reference::layer_norm(o, epsilon, x, residual, gain, bias, sum, y, mean, rstd);
  }
  void layer_norm_backward(const Rows& o, bool accumulate, Const dy, Const x, Const gain, Const mean, Const rstd,
                           Const residual_grad, Mut dx, Mut dgain, Mut dbias) override {
    reference::layer_norm_backward(o, accumulate, dy, x, gain, mean, rstd, residual_grad, dx, dgain, dbias);
  }
  void rms_norm(const Rows& o, float epsilon, Const x, Const residual, Const gain, Mut sum, Mut y, Mut rstd) override {
    reference::rms_norm(o, epsilon, x, residual, gain, sum, y, rstd);
  }
  void rms_norm_backward(const Rows& o, bool accumulate, Const dy, Const x, Const gain, Const rstd, Const residual_grad,
                         Mut dx, Mut dgain) override {
    reference::rms_norm_backward(o, accumulate, dy, x, gain, rstd, residual_grad, dx, dgain);
  }
  void gelu(std::int64_t count, Const x, Mut y) override { reference::gelu(count, x, y); }
  void gelu_backward(std::int64_t count, Const dy, Const x, Mut dx) override {
    reference::gelu_backward(count, dy, x, dx);
  }
  void gelu_exact(std::int64_t count, Const x, Mut y) override { reference::gelu_exact(count, x, y); }
  void gelu_exact_backward(std::int64_t count, Const dy, Const x, Mut dx) override {
    reference::gelu_exact_backward(count, dy, x, dx);
  }
  void swiglu(std::int64_t count, Const gate, Const up, Mut y) override { reference::swiglu(count, gate, up, y); }
  void swiglu_backward(std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup) override {
    reference::swiglu_backward(count, dy, gate, up, dgate, dup);
  }
  void geglu(std::int64_t count, Const gate, Const up, Mut y) override { reference::geglu(count, gate, up, y); }
  void geglu_backward(std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup) override {
    reference::geglu_backward(count, dy, gate, up, dgate, dup);
  }
  void relu(std::int64_t count, Const x, Mut y) override { reference::relu(count, x, y); }
  void relu_backward(std::int64_t count, Const dy, Const y, Mut dx) override {
    reference::relu_backward(count, dy, y, dx);
  }
  void scale(std::int64_t count, double factor, Const x, Mut y) override { reference::scale(count, factor, x, y); }
  void rotary(const Rotary& o, Const x, Mut y) override { reference::rotary(o, x, y); }
  void add(std::int64_t count, Const a, Const b, Mut sum) override { reference::add(count, a, b, sum); }
  void cast(std::int64_t count, bool accumulate, Const from, Mut to) override {
    reference::cast(count, accumulate, from, to);
  }
  void dropout(const Dropout& o, Const x, Mut y) override { reference::dropout(o, x, y); }
  void attention(const Attention& o, Const q, Const k, Const v, Const bias, Mut y, Mut log_sum_exp) override {
    reference::attention(o, q, k, v, bias, y, log_sum_exp);
  }
  void attention_backward(const Attention& o, Const dy, Const q, Const k, Const v, Const bias, Const y,
                          Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dbias) override {
    reference::attention_backward(o, dy, q, k, v, bias, y, log_sum_exp, dq, dk, dv, dbias);
  }
  void reattention(const Reattention& o, Const q, Const k, Const v, Const mixing, Const gain, Const bias, Mut y,
                   Mut log_sum_exp) override {
    reference::reattention(o, q, k, v, mixing, gain, bias, y, log_sum_exp);
  }
  void reattention_backward(const Reattention& o, bool accumulate, Const dy, Const q, Const k, Const v, Const mixing,
                            Const gain, Const bias, Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dmixing, Mut dgain,
                            Mut dbias) override {
    reference::reattention_backward(o, accumulate, dy, q, k, v, mixing, gain, bias, log_sum_exp, dq, dk, dv, dmixing,
                                    dgain, dbias);
  }
  void embedding(const Embedding& o, Const tokens, Const token_table, Const position_table, Mut x) override {
    reference::embedding(o, tokens, token_table, position_table, x);
  }
  void embedding_backward(const Embedding& o, bool accumulate, Const dx, Const tokens, Mut d_token_table,
                          Mut d_position_table) override {
    reference::embedding_backward(o, accumulate, dx, tokens, d_token_table, d_position_table);
  }
  void relative_bias(const RelativeBias& o, Const table, Mut bias) override {
    reference::relative_bias(o, table, bias);
  }
  void relative_bias_backward(const RelativeBias& o, bool accumulate, Const dbias, Mut dtable) override {
    reference::relative_bias_backward(o, accumulate, dbias, dtable);
  }
  void image_tokens(const ImageTokens& o, Const patches, Const class_token, Const positions, Mut x) override {
    reference::image_tokens(o, patches, class_token, positions, x);
  }
  void image_tokens_backward(const ImageTokens& o, bool accumulate, Const dx, Mut dpatches, Mut dclass_token,
                             Mut dpositions) override {
    reference::image_tokens_backward(o, accumulate, dx, dpatches, dclass_token, dpositions);
  }
  void first_token(const ImageTokens& o, Const x, Mut y) override { reference::first_token(o, x, y); }
  void first_token_backward(const ImageTokens& o, Const dy, Mut dx) override {
    reference::first_token_backward(o, dy, dx);
  }
  void cross_entropy(const Rows& o, Const logits, Const targets, Mut loss, Mut log_sum_exp) override {
    reference::cross_entropy(o, logits, targets, loss, log_sum_exp);
  }
  void cross_entropy_backward(const Rows& o, float scale, Const logits, Const targets, Const log_sum_exp,
                              Mut dlogits) override {
    reference::cross_entropy_backward(o, scale, logits, targets, log_sum_exp, dlogits);
  }
  void add_powers(int power, std::int64_t count, Const x, std::span<std::int64_t, ExactSum::words> sum) override {
    reference::add_powers(power, count, x, sum);
  }
  void max_magnitude(std::int64_t count, Const x, std::int64_t& largest) override {
    reference::max_magnitude(count, x, largest);
  }
  void adamw(const Update& o, Const grad, Mut parameter, Mut first_moment, Mut second_moment) override {
    reference::adamw(o, grad, parameter, first_moment, second_moment);
  }
  void adam(const Update& o, Const grad, Mut parameter, Mut first_moment, Mut second_moment) override {
    reference::adam(o, grad, parameter, first_moment, second_moment);
  }
  void sgd(const Update& o, Const grad, Mut parameter, Mut velocity) override {
    reference::sgd(o, grad, parameter, velocity);
  }
  void lion(const Update& o, Const grad, Mut parameter, Mut moment) override {
    reference::lion(o, grad, parameter, moment);
  }
};

}  // namespace

std::unique_ptr<Backend> make_reference() { return std::make_unique<Reference>(); }

}  // namespace foreshard::kernels
