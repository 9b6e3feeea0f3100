#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/matmul.hpp"

namespace foreshard::kernels {
namespace {

class Cpu final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }

  void matmul(const Matmul& o, Const a, Const b, Const bias, Mut c) override {
    cpu::matmul(o, routes_.of(o), a, b, bias, c);
  }
  void set_matmul_routes(const MatmulRoutes& routes) override { routes_ = routes; }
  std::int64_t matmul_scratch_bytes(const Matmul& o, DType operands, DType result) const override {
    return cpu::matmul_scratch_bytes(o, routes_.of(o), operands, result);
  }
  void bias_grad(const Rows& o, bool accumulate, Const dy, Mut dbias) override {
    cpu::bias_grad(o, accumulate, dy, dbias);
  }
  void layer_norm(const Rows& o, float epsilon, Const x, Const residual, Const gain, Const bias, Mut sum, Mut y,
                  Mut mean, Mut rstd) override {
    cpu::layer_norm(o, epsilon, x, residual, gain, bias, sum, y, mean, rstd);
  }
  void layer_norm_backward(const Rows& o, bool accumulate, Const dy, Const x, Const gain, Const mean, Const rstd,
                           Const residual_grad, Mut dx, Mut dgain, Mut dbias) override {
    cpu::layer_norm_backward(o, accumulate, dy, x, gain, mean, rstd, residual_grad, dx, dgain, dbias);
  }
  void rms_norm(const Rows& o, float epsilon, Const x, Const residual, Const gain, Mut sum, Mut y, Mut rstd) override {
    cpu::rms_norm(o, epsilon, x, residual, gain, sum, y, rstd);
  }
  void rms_norm_backward(const Rows& o, bool accumulate, Const dy, Const x, Const gain, Const rstd, Const residual_grad,
                         Mut dx, Mut dgain) override {
    cpu::rms_norm_backward(o, accumulate, dy, x, gain, rstd, residual_grad, dx, dgain);
  }
  void gelu(std::int64_t count, Const x, Mut y) override { cpu::gelu(count, x, y); }
  void gelu_backward(std::int64_t count, Const dy, Const x, Mut dx) override { cpu::gelu_backward(count, dy, x, dx); }
  void gelu_exact(std::int64_t count, Const x, Mut y) override { cpu::gelu_exact(count, x, y); }
  void gelu_exact_backward(std::int64_t count, Const dy, Const x, Mut dx) override {
    cpu::gelu_exact_backward(count, dy, x, dx);
  }
  void swiglu(std::int64_t count, Const gate, Const up, Mut y) override { cpu::swiglu(count, gate, up, y); }
  void swiglu_backward(std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup) override {
    cpu::swiglu_backward(count, dy, gate, up, dgate, dup);
  }
  void geglu(std::int64_t count, Const gate, Const up, Mut y) override { cpu::geglu(count, gate, up, y); }
  void geglu_backward(std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup) override {
    cpu::geglu_backward(count, dy, gate, up, dgate, dup);
  }
  void relu(std::int64_t count, Const x, Mut y) override { cpu::relu(count, x, y); }
  void relu_backward(std::int64_t count, Const dy, Const y, Mut dx) override { cpu::relu_backward(count, dy, y, dx); }
  void scale(std::int64_t count, double factor, Const x, Mut y) override { cpu::scale(count, factor, x, y); }
  void rotary(const Rotary& o, Const x, Mut y) override { cpu::rotary(o, x, y); }
  void add(std::int64_t count, Const a, Const b, Mut sum) override { cpu::add(count, a, b, sum); }
  void cast(std::int64_t count, bool accumulate, Const from, Mut to) override {
    cpu::cast(count, accumulate, from, to);
  }
  void dropout(const Dropout& o, Const x, Mut y) override { cpu::dropout(o, x, y); }
  void set_attention_routes(const AttentionRoutes& routes) override { attention_routes_ = routes; }
  void attention(const Attention& o, Const q, Const k, Const v, Const bias, Mut y, Mut log_sum_exp) override {
    cpu::attention(o, attention_routes_.of(o), q, k, v, bias, y, log_sum_exp);
  }
  void attention_backward(const Attention& o, Const dy, Const q, Const k, Const v, Const bias, Const y,
                          Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dbias) override {
    cpu::attention_backward(o, attention_routes_.of(o), dy, q, k, v, bias, y, log_sum_exp, dq, dk, dv, dbias);
  }
  void reattention(const Reattention& o, Const q, Const k, Const v, Const mixing, Const gain, Const bias, Mut y,
                   Mut log_sum_exp) override {
    cpu::reattention(o, q, k, v, mixing, gain, bias, y, log_sum_exp);
  }
  void reattention_backward(const Reattention& o, bool accumulate, Const dy, Const q, Const k, Const v, Const mixing,
                            Const gain, Const bias, Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dmixing, Mut dgain,
                            Mut dbias) override {
    cpu::reattention_backward(o, accumulate, dy, q, k, v, mixing, gain, bias, log_sum_exp, dq, dk, dv, dmixing, dgain,
                              dbias);
  }
  void embedding(const Embedding& o, Const tokens, Const token_table, Const position_table, Mut x) override {
    cpu::embedding(o, tokens, token_table, position_table, x);
  }
  void embedding_backward(const Embedding& o, bool accumulate, Const dx, Const tokens, Mut d_token_table,
                          Mut d_position_table) override {
    cpu::embedding_backward(o, accumulate, dx, tokens, d_token_table, d_position_table);
  }
  void relative_bias(const RelativeBias& o, Const table, Mut bias) override { cpu::relative_bias(o, table, bias); }
  void relative_bias_backward(const RelativeBias& o, bool accumulate, Const dbias, Mut dtable) override {
    cpu::relative_bias_backward(o, accumulate, dbias, dtable);
  }
  void image_tokens(const ImageTokens& o, Const patches, Const class_token, Const positions, Mut x) override {
    cpu::image_tokens(o, patches, class_token, positions, x);
  }
  void image_tokens_backward(const ImageTokens& o, bool accumulate, Const dx, Mut dpatches, Mut dclass_token,
                             Mut dpositions) override {
    cpu::image_tokens_backward(o, accumulate, dx, dpatches, dclass_token, dpositions);
  }
  void first_token(const ImageTokens& o, Const x, Mut y) override { cpu::first_token(o, x, y); }
  void first_token_backward(const ImageTokens& o, Const dy, Mut dx) override { cpu::first_token_backward(o, dy, dx); }
  void cross_entropy(const Rows& o, Const logits, Const targets, Mut loss, Mut log_sum_exp) override {
    cpu::cross_entropy(o, logits, targets, loss, log_sum_exp);
  }
  void cross_entropy_backward(const Rows& o, float scale, Const logits, Const targets, Const log_sum_exp,
                              Mut dlogits) override {
    cpu::cross_entropy_backward(o, scale, logits, targets, log_sum_exp, dlogits);
  }
  void add_powers(int power, std::int64_t count, Const x, std::span<std::int64_t, ExactSum::words> sum) override {
    cpu::add_powers(power, count, x, sum);
  }
  void max_magnitude(std::int64_t count, Const x, std::int64_t& largest) override {
    cpu::max_magnitude(count, x, largest);
  }
  void adamw(const Update& o, Const grad, Mut parameter, Mut first_moment, Mut second_moment) override {
    cpu::adamw(o, grad, parameter, first_moment, second_moment);
  }
  void adam(const Update& o, Const grad, Mut parameter, Mut first_moment, Mut second_moment) override {
    cpu::adam(o, grad, parameter, first_moment, second_moment);
  }
  void sgd(const Update& o, Const grad, Mut parameter, Mut velocity) override {
    cpu::sgd(o, grad, parameter, velocity);
  }
  void lion(const Update& o, Const grad, Mut parameter, Mut moment) override { cpu::lion(o, grad, parameter, moment); }

 private:
  MatmulRoutes routes_;
  AttentionRoutes attention_routes_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu() { return std::make_unique<Cpu>(); }

}  // namespace foreshard::kernels
