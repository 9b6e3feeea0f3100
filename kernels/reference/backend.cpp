#include "kernels/operand.hpp"
#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels {
namespace {

/// Calls f with a value of the type that stands for float or double.
template <class F>
void by_type(DType type, F f) {
  if (type == DType::f64) return f(double{});
  FORESHARD_EXPECT(type == DType::f32, type_mismatch(type, DType::f32));
  f(float{});
}

class Reference final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }

  void matmul(const Matmul& o, Const a, Const b, Const bias, Mut c) override {
    by_type(c.dtype, [&]<class T>(T) { reference::matmul(o, as<T>(a), as<T>(b), as<T>(bias), as<T>(c)); });
  }
  void bias_grad(const Rows& o, bool accumulate, Const dy, Mut dbias) override {
    by_type(dbias.dtype, [&]<class T>(T) { reference::bias_grad(o, accumulate, as<T>(dy), as<T>(dbias)); });
  }
  void layer_norm(const Rows& o, float epsilon, Const x, Const residual, Const gain, Const bias, Mut sum, Mut y,
                  Mut mean, Mut rstd) override {
    by_type(y.dtype, [&]<class T>(T) {
      reference::layer_norm(o, epsilon, as<T>(x), as<T>(residual), as<T>(gain), as<T>(bias), as<T>(sum), as<T>(y),
                            as<T>(mean), as<T>(rstd));
    });
  }
  void layer_norm_backward(const Rows& o, bool accumulate, Const dy, Const x, Const gain, Const mean, Const rstd,
                           Const residual_grad, Mut dx, Mut dgain, Mut dbias) override {
    by_type(dx.dtype, [&]<class T>(T) {
      reference::layer_norm_backward(o, accumulate, as<T>(dy), as<T>(x), as<T>(gain), as<T>(mean), as<T>(rstd),
                                     as<T>(residual_grad), as<T>(dx), as<T>(dgain), as<T>(dbias));
    });
  }
  void gelu(std::int64_t count, Const x, Mut y) override {
    by_type(y.dtype, [&]<class T>(T) { reference::gelu(count, as<T>(x), as<T>(y)); });
  }
  void gelu_backward(std::int64_t count, Const dy, Const x, Mut dx) override {
    by_type(dx.dtype, [&]<class T>(T) { reference::gelu_backward(count, as<T>(dy), as<T>(x), as<T>(dx)); });
  }
  void add(std::int64_t count, Const a, Const b, Mut sum) override {
    by_type(sum.dtype, [&]<class T>(T) { reference::add(count, as<T>(a), as<T>(b), as<T>(sum)); });
  }
  void dropout(const Dropout& o, Const x, Mut y) override {
    by_type(y.dtype, [&]<class T>(T) { reference::dropout(o, as<T>(x), as<T>(y)); });
  }
  void attention(const Attention& o, Const qkv, Mut y, Mut log_sum_exp) override {
    by_type(y.dtype, [&]<class T>(T) { reference::attention(o, as<T>(qkv), as<T>(y), as<T>(log_sum_exp)); });
  }
  void attention_backward(const Attention& o, Const dy, Const qkv, Const y, Const log_sum_exp, Mut dqkv) override {
    by_type(dqkv.dtype, [&]<class T>(T) {
      reference::attention_backward(o, as<T>(dy), as<T>(qkv), as<T>(y), as<T>(log_sum_exp), as<T>(dqkv));
    });
  }
  void embedding(const Embedding& o, Const tokens, Const token_table, Const position_table, Mut x) override {
    by_type(x.dtype, [&]<class T>(T) {
      reference::embedding(o, as<std::int32_t>(tokens), as<T>(token_table), as<T>(position_table), as<T>(x));
    });
  }
  void embedding_backward(const Embedding& o, bool accumulate, Const dx, Const tokens, Mut d_token_table,
                          Mut d_position_table) override {
    by_type(dx.dtype, [&]<class T>(T) {
      reference::embedding_backward(o, accumulate, as<T>(dx), as<std::int32_t>(tokens), as<T>(d_token_table),
                                    as<T>(d_position_table));
    });
  }
  void cross_entropy(const Rows& o, Const logits, Const targets, Mut loss, Mut log_sum_exp) override {
    by_type(logits.dtype, [&]<class T>(T) {
      reference::cross_entropy(o, as<T>(logits), as<std::int32_t>(targets), as<double>(loss), as<T>(log_sum_exp));
    });
  }
  void cross_entropy_backward(const Rows& o, Const logits, Const targets, Const log_sum_exp, Mut dlogits) override {
    by_type(dlogits.dtype, [&]<class T>(T) {
      reference::cross_entropy_backward(o, as<T>(logits), as<std::int32_t>(targets), as<T>(log_sum_exp),
                                        as<T>(dlogits));
    });
  }
  void add_squares(std::int64_t count, Const x, std::span<std::int64_t, ExactSum::words> sum) override {
    by_type(x.dtype, [&]<class T>(T) { reference::add_squares(count, as<T>(x), sum); });
  }
  void adamw(const AdamW& o, Const grad, Mut parameter, Mut first_moment, Mut second_moment) override {
    by_type(parameter.dtype, [&]<class T>(T) {
      reference::adamw(o, as<T>(grad), as<T>(parameter), as<T>(first_moment), as<T>(second_moment));
    });
  }
};

}  // namespace

std::unique_ptr<Backend> make_reference() { return std::make_unique<Reference>(); }

}  // namespace foreshard::kernels
