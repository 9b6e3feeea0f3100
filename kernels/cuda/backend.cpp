#include "kernels/cuda/backend.hpp"

#include "kernels/cuda/attention_by_cudnn.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/matmul.hpp"

namespace foreshard::kernels::cuda {
namespace {

class Cuda final : public Kernels {
 public:
  explicit Cuda(const Options& o)
      : queue_{o.stream, static_cast<std::byte*>(o.workspace), o.workspace_bytes},
        products_(queue_),
        fused_attention_(queue_) {}

  std::string_view name() const override { return "cuda"; }

  void matmul(const Matmul& o, Const a, Const b, Const bias, Mut c) override { products_.run(o, a, b, bias, c); }
  void matmul(const Matmul& o, Fused fused, Const a, Const b, Const bias, Mut c, Mut other) override {
    products_.run_fused(o, fused, a, b, bias, c, other);
  }
  std::vector<Algorithm> candidates(const Matmul& o, const MatmulTypes& types) override {
    return products_.candidates(o, types);
  }
  void set_algorithm(const Matmul& o, const MatmulTypes& types, const Algorithm& algorithm) override {
    products_.set_algorithm(o, types, algorithm);
  }
  void bias_grad(const Rows& o, bool accumulate, Const dy, Mut dbias) override {
    cuda::bias_grad(queue_, o, accumulate, dy, dbias);
  }
  void layer_norm(const Rows& o, float epsilon, Const x, Const residual, Const gain, Const bias, Mut sum, Mut y,
                  Mut mean, Mut rstd) override {
    cuda::layer_norm(queue_, o, epsilon, x, residual, gain, bias, sum, y, mean, rstd);
  }
  void layer_norm_backward(const Rows& o, bool accumulate, Const dy, Const x, Const gain, Const mean, Const rstd,
                           Const residual_grad, Mut dx, Mut dgain, Mut dbias) override {
    cuda::layer_norm_backward(queue_, o, accumulate, dy, x, gain, mean, rstd, residual_grad, dx, dgain, dbias);
  }
  void rms_norm(const Rows& o, float epsilon, Const x, Const residual, Const gain, Mut sum, Mut y, Mut rstd) override {
    cuda::rms_norm(queue_, o, epsilon, x, residual, gain, sum, y, rstd);
  }
  void rms_norm_backward(const Rows& o, bool accumulate, Const dy, Const x, Const gain, Const rstd, Const residual_grad,
                         Mut dx, Mut dgain) override {
    cuda::rms_norm_backward(queue_, o, accumulate, dy, x, gain, rstd, residual_grad, dx, dgain);
  }
  void gelu(std::int64_t count, Const x, Mut y) override { cuda::gelu(queue_, count, x, y); }
  void gelu_backward(std::int64_t count, Const dy, Const x, Mut dx) override {
    cuda::gelu_backward(queue_, count, dy, x, dx);
  }
  void gelu_exact(std::int64_t count, Const x, Mut y) override { cuda::gelu_exact(queue_, count, x, y); }
  void gelu_exact_backward(std::int64_t count, Const dy, Const x, Mut dx) override {
    cuda::gelu_exact_backward(queue_, count, dy, x, dx);
  }
  void swiglu(std::int64_t count, Const gate, Const up, Mut y) override { cuda::swiglu(queue_, count, gate, up, y); }
  void swiglu_backward(std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup) override {
    cuda::swiglu_backward(queue_, count, dy, gate, up, dgate, dup);
  }
  void geglu(std::int64_t count, Const gate, Const up, Mut y) override { cuda::geglu(queue_, count, gate, up, y); }
  void geglu_backward(std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup) override {
    cuda::geglu_backward(queue_, count, dy, gate, up, dgate, dup);
  }
  void relu(std::int64_t count, Const x, Mut y) override { cuda::relu(queue_, count, x, y); }
  void relu_backward(std::int64_t count, Const dy, Const y, Mut dx) override {
    cuda::relu_backward(queue_, count, dy, y, dx);
  }
  void scale(std::int64_t count, double factor, Const x, Mut y) override { cuda::scale(queue_, count, factor, x, y); }
  void rotary(const Rotary& o, Const x, Mut y) override { cuda::rotary(queue_, o, x, y); }
  void add(std::int64_t count, Const a, Const b, Mut sum) override { cuda::add(queue_, count, a, b, sum); }
  void cast(std::int64_t count, bool accumulate, Const from, Mut to) override {
    cuda::cast(queue_, count, accumulate, from, to);
  }
  void dropout(const Dropout& o, Const x, Mut y) override { cuda::dropout(queue_, nullptr, o, x, y); }
  void dropout(const Step* step, const Dropout& o, Const x, Mut y) override { cuda::dropout(queue_, step, o, x, y); }

  void attention(const Attention& o, Const q, Const k, Const v, Const bias, Mut y, Mut log_sum_exp) override {
    if (!fused_attention_.forward(o, q, k, v, bias, y, log_sum_exp))
      cuda::attention(queue_, o, q, k, v, bias, y, log_sum_exp);
  }
  void attention_backward(const Attention& o, Const dy, Const q, Const k, Const v, Const bias, Const y,
                          Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dbias) override {
    if (!fused_attention_.backward(o, dy, q, k, v, bias, y, log_sum_exp, dq, dk, dv))
      cuda::attention_backward(queue_, o, dy, q, k, v, bias, y, log_sum_exp, dq, dk, dv, dbias);
  }
  bool set_attention_by_cudnn(const Attention& o, DType type, bool by_cudnn) override {
    return fused_attention_.set(o, type, by_cudnn);
  }
  std::size_t cudnn_version() const override { return cudnn::version(); }
  void reattention(const Reattention& o, Const q, Const k, Const v, Const mixing, Const gain, Const bias, Mut y,
                   Mut log_sum_exp) override {
    cuda::reattention(queue_, o, q, k, v, mixing, gain, bias, y, log_sum_exp);
  }
  void reattention_backward(const Reattention& o, bool accumulate, Const dy, Const q, Const k, Const v, Const mixing,
                            Const gain, Const bias, Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dmixing, Mut dgain,
                            Mut dbias) override {
    cuda::reattention_backward(queue_, o, accumulate, dy, q, k, v, mixing, gain, bias, log_sum_exp, dq, dk, dv, dmixing,
                               dgain, dbias);
  }
  void relative_bias(const RelativeBias& o, Const table, Mut bias) override {
    cuda::relative_bias(queue_, o, table, bias);
  }
  void relative_bias_backward(const RelativeBias& o, bool accumulate, Const dbias, Mut dtable) override {
    cuda::relative_bias_backward(queue_, o, accumulate, dbias, dtable);
  }
  void image_tokens(const ImageTokens& o, Const patches, Const class_token, Const positions, Mut x) override {
    cuda::image_tokens(queue_, o, patches, class_token, positions, x);
  }
  void image_tokens_backward(const ImageTokens& o, bool accumulate, Const dx, Mut dpatches, Mut dclass_token,
                             Mut dpositions) override {
    cuda::image_tokens_backward(queue_, o, accumulate, dx, dpatches, dclass_token, dpositions);
  }
  void first_token(const ImageTokens& o, Const x, Mut y) override { cuda::first_token(queue_, o, x, y); }
  void first_token_backward(const ImageTokens& o, Const dy, Mut dx) override {
    cuda::first_token_backward(queue_, o, dy, dx);
  }

  void embedding(const Embedding& o, Const tokens, Const token_table, Const position_table, Mut x) override {
    cuda::embedding(queue_, o, tokens, token_table, position_table, x);
  }
  void embedding_backward(const Embedding& o, bool accumulate, Const dx, Const tokens, Mut d_token_table,
                          Mut d_position_table) override {
    cuda::embedding_backward(queue_, o, accumulate, dx, tokens, d_token_table, d_position_table);
  }

  void cross_entropy(const Rows& o, Const logits, Const targets, Mut loss, Mut log_sum_exp) override {
    cuda::cross_entropy(queue_, nullptr, o, logits, targets, loss, log_sum_exp);
  }
  void cross_entropy(Step* step, const Rows& o, Const logits, Const targets, Mut loss, Mut log_sum_exp) override {
    cuda::cross_entropy(queue_, step, o, logits, targets, loss, log_sum_exp);
  }
  void cross_entropy_backward(const Rows& o, float scale, Const logits, Const targets, Const log_sum_exp,
                              Mut dlogits) override {
    cuda::cross_entropy_backward(queue_, nullptr, o, scale, logits, targets, log_sum_exp, dlogits);
  }
  void cross_entropy_backward(const Step* step, const Rows& o, Const logits, Const targets, Const log_sum_exp,
                              Mut dlogits) override {
    cuda::cross_entropy_backward(queue_, step, o, 1, logits, targets, log_sum_exp, dlogits);
  }

  void add_powers(int power, std::int64_t count, Const x, std::span<std::int64_t, ExactSum::words> sum) override {
    cuda::add_powers(queue_, power, count, x, sum.data());
  }
  void max_magnitude(std::int64_t count, Const x, std::int64_t& largest) override {
    cuda::max_magnitude(queue_, count, x, &largest);
  }

  void adamw(const Update& o, Const grad, Mut parameter, Mut first_moment, Mut second_moment) override {
    cuda::update(queue_, Optimizer::adamw, o, grad, parameter, first_moment, second_moment);
  }
  void adam(const Update& o, Const grad, Mut parameter, Mut first_moment, Mut second_moment) override {
    cuda::update(queue_, Optimizer::adam, o, grad, parameter, first_moment, second_moment);
  }
  void sgd(const Update& o, Const grad, Mut parameter, Mut velocity) override {
    cuda::update(queue_, velocity.data ? Optimizer::sgd_momentum : Optimizer::sgd, o, grad, parameter, velocity, {});
  }
  void lion(const Update& o, Const grad, Mut parameter, Mut moment) override {
    cuda::update(queue_, Optimizer::lion, o, grad, parameter, moment, {});
  }
  void update(Optimizer optimizer, const Step* step, const Rule* rules, const Part* parts, std::int64_t part_count,
              std::int64_t count, float norm_power, const std::int64_t* norm_words, std::int64_t word_count,
              const double* loss, Const grad, Mut parameter, Mut first, Mut second) override {
    cuda::update(queue_, optimizer, step, rules, parts, part_count, count, norm_power, norm_words, word_count, loss,
                 grad, parameter, first, second);
  }

  void load_micro_batch(const Step* step, std::int64_t count, Const staged, Mut to) override {
    cuda::load_micro_batch(queue_, step, count, staged, to);
  }
  void copy(const void* from, void* to, std::int64_t bytes) override { cuda::copy(queue_, from, to, bytes); }
  void zero(void* to, std::int64_t bytes) override { cuda::zero(queue_, to, bytes); }
  void advance(Step* step) override { cuda::advance(queue_, step); }
  void mark(std::uint64_t* host_mapped, std::uint64_t value) override { cuda::mark(queue_, host_mapped, value); }

 private:
  Queue queue_;
  Products products_;
  AttentionByCudnn fused_attention_;
};

}  // namespace

std::unique_ptr<Kernels> make(const Options& options) { return std::make_unique<Cuda>(options); }

}  // namespace foreshard::kernels::cuda
