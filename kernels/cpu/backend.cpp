#include "kernels/cpu/kernels.hpp"
#include "kernels/operand.hpp"

namespace foreshard::kernels {
namespace {

const float* f32(const Const& operand) { return as<float>(operand); }
float* f32(const Mut& operand) { return as<float>(operand); }
const std::int32_t* i32(const Const& operand) { return as<std::int32_t>(operand); }

class Cpu final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }

  void matmul(const Matmul& o, Const a, Const b, Const bias, Mut c) override {
    cpu::matmul(o, f32(a), f32(b), f32(bias), f32(c));
  }
  void bias_grad(const Rows& o, bool accumulate, Const dy, Mut dbias) override {
    cpu::bias_grad(o, accumulate, f32(dy), f32(dbias));
  }
  void layer_norm(const Rows& o, float epsilon, Const x, Const residual, Const gain, Const bias, Mut sum, Mut y,
                  Mut mean, Mut rstd) override {
    cpu::layer_norm(o, epsilon, f32(x), f32(residual), f32(gain), f32(bias), f32(sum), f32(y), f32(mean), f32(rstd));
  }
  void layer_norm_backward(const Rows& o, bool accumulate, Const dy, Const x, Const gain, Const mean, Const rstd,
                           Const residual_grad, Mut dx, Mut dgain, Mut dbias) override {
    cpu::layer_norm_backward(o, accumulate, f32(dy), f32(x), f32(gain), f32(mean), f32(rstd), f32(residual_grad),
                             f32(dx), f32(dgain), f32(dbias));
  }
  void gelu(std::int64_t count, Const x, Mut y) override { cpu::gelu(count, f32(x), f32(y)); }
  void gelu_backward(std::int64_t count, Const dy, Const x, Mut dx) override {
    cpu::gelu_backward(count, f32(dy), f32(x), f32(dx));
  }
  void add(std::int64_t count, Const a, Const b, Mut sum) override { cpu::add(count, f32(a), f32(b), f32(sum)); }
  void dropout(const Dropout& o, Const x, Mut y) override { cpu::dropout(o, f32(x), f32(y)); }

  void attention(const Attention& o, Const qkv, Mut y, Mut log_sum_exp) override {
    cpu::attention(o, f32(qkv), f32(y), f32(log_sum_exp));
  }
  void attention_backward(const Attention& o, Const dy, Const qkv, Const y, Const log_sum_exp, Mut dqkv) override {
    cpu::attention_backward(o, f32(dy), f32(qkv), f32(y), f32(log_sum_exp), f32(dqkv));
  }
  void embedding(const Embedding& o, Const tokens, Const token_table, Const position_table, Mut x) override {
    cpu::embedding(o, i32(tokens), f32(token_table), f32(position_table), f32(x));
  }
  void embedding_backward(const Embedding& o, bool accumulate, Const dx, Const tokens, Mut d_token_table,
                          Mut d_position_table) override {
    cpu::embedding_backward(o, accumulate, f32(dx), i32(tokens), f32(d_token_table), f32(d_position_table));
  }
  void cross_entropy(const Rows& o, Const logits, Const targets, Mut loss, Mut log_sum_exp) override {
    cpu::cross_entropy(o, f32(logits), i32(targets), as<double>(loss), f32(log_sum_exp));
  }
  void cross_entropy_backward(const Rows& o, Const logits, Const targets, Const log_sum_exp, Mut dlogits) override {
    cpu::cross_entropy_backward(o, f32(logits), i32(targets), f32(log_sum_exp), f32(dlogits));
  }
  void add_squares(std::int64_t count, Const x, std::span<std::int64_t, ExactSum::words> sum) override {
    cpu::add_squares(count, f32(x), sum);
  }
  void adamw(const AdamW& o, Const grad, Mut parameter, Mut first_moment, Mut second_moment) override {
    cpu::adamw(o, f32(grad), f32(parameter), f32(first_moment), f32(second_moment));
  }
};

}  // namespace

std::unique_ptr<Backend> make_cpu() { return std::make_unique<Cpu>(); }

}  // namespace foreshard::kernels
