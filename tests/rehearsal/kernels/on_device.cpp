// A backend on host memory whose kernels run on a device.
#include "kernels/cuda/backend.hpp"
#include "rehearsal/kernels/operands.hpp"

namespace foreshard::kernels {
namespace {

constexpr std::int64_t workspace_bytes = 4 << 20;

class OnDevice final : public Backend {
 public:
  OnDevice() {
    cuda::check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, 0), "cudaStreamCreateWithPriority");
    cuda::check(cudaMalloc(&workspace_, workspace_bytes), "cudaMalloc");
    kernels_ = cuda::make({stream_, workspace_, workspace_bytes});
  }
  ~OnDevice() override {
    kernels_.reset();
    cudaFree(workspace_);
    cudaStreamDestroy(stream_);
  }
  std::string_view name() const override { return kernels_->name(); }

  void matmul(const Matmul& o, Const a, Const b, Const bias, Mut c) override {
    run([&](Operands& x) {
      kernels_->matmul(o, x.in(a, o.m * o.k), x.in(b, o.k * o.n), x.in(bias, o.n), x.out(c, o.m * o.n));
    });
  }
  void bias_grad(const Rows& o, bool accumulate, Const dy, Mut dbias) override {
    run([&](Operands& x) { kernels_->bias_grad(o, accumulate, x.in(dy, o.rows * o.cols), x.out(dbias, o.cols)); });
  }
  void layer_norm(const Rows& o, float epsilon, Const x, Const residual, Const gain, Const bias, Mut sum, Mut y,
                  Mut mean, Mut rstd) override {
    const std::int64_t n = o.rows * o.cols;
    run([&](Operands& d) {
      kernels_->layer_norm(o, epsilon, d.in(x, n), d.in(residual, n), d.in(gain, o.cols), d.in(bias, o.cols),
                           d.out(sum, n), d.out(y, n), d.out(mean, o.rows), d.out(rstd, o.rows));
    });
  }
  void layer_norm_backward(const Rows& o, bool accumulate, Const dy, Const x, Const gain, Const mean, Const rstd,
                           Const residual_grad, Mut dx, Mut dgain, Mut dbias) override {
    const std::int64_t n = o.rows * o.cols;
    run([&](Operands& d) {
      kernels_->layer_norm_backward(o, accumulate, d.in(dy, n), d.in(x, n), d.in(gain, o.cols), d.in(mean, o.rows),
                                    d.in(rstd, o.rows), d.in(residual_grad, n), d.out(dx, n), d.out(dgain, o.cols),
                                    d.out(dbias, o.cols));
    });
  }
  void rms_norm(const Rows& o, float epsilon, Const x, Const residual, Const gain, Mut sum, Mut y, Mut rstd) override {
    const std::int64_t n = o.rows * o.cols;
    run([&](Operands& d) {
      kernels_->rms_norm(o, epsilon, d.in(x, n), d.in(residual, n), d.in(gain, o.cols), d.out(sum, n), d.out(y, n),
                         d.out(rstd, o.rows));
    });
  }
  void rms_norm_backward(const Rows& o, bool accumulate, Const dy, Const x, Const gain, Const rstd, Const residual_grad,
                         Mut dx, Mut dgain) override {
    const std::int64_t n = o.rows * o.cols;
    run([&](Operands& d) {
      kernels_->rms_norm_backward(o, accumulate, d.in(dy, n), d.in(x, n), d.in(gain, o.cols), d.in(rstd, o.rows),
                                  d.in(residual_grad, n), d.out(dx, n), d.out(dgain, o.cols));
    });
  }
  void gelu(std::int64_t n, Const x, Mut y) override {
    run([&](Operands& d) { kernels_->gelu(n, d.in(x, n), d.out(y, n)); });
  }
  void gelu_backward(std::int64_t n, Const dy, Const x, Mut dx) override {
    run([&](Operands& d) { kernels_->gelu_backward(n, d.in(dy, n), d.in(x, n), d.out(dx, n)); });
  }
  void gelu_exact(std::int64_t n, Const x, Mut y) override {
    run([&](Operands& d) { kernels_->gelu_exact(n, d.in(x, n), d.out(y, n)); });
  }
  void gelu_exact_backward(std::int64_t n, Const dy, Const x, Mut dx) override {
    run([&](Operands& d) { kernels_->gelu_exact_backward(n, d.in(dy, n), d.in(x, n), d.out(dx, n)); });
  }
  void swiglu(std::int64_t n, Const gate, Const up, Mut y) override {
    run([&](Operands& d) { kernels_->swiglu(n, d.in(gate, n), d.in(up, n), d.out(y, n)); });
  }
  void swiglu_backward(std::int64_t n, Const dy, Const gate, Const up, Mut dgate, Mut dup) override {
    run([&](Operands& d) {
      kernels_->swiglu_backward(n, d.in(dy, n), d.in(gate, n), d.in(up, n), d.out(dgate, n), d.out(dup, n));
    });
  }
  void geglu(std::int64_t n, Const gate, Const up, Mut y) override {
    run([&](Operands& d) { kernels_->geglu(n, d.in(gate, n), d.in(up, n), d.out(y, n)); });
  }
  void geglu_backward(std::int64_t n, Const dy, Const gate, Const up, Mut dgate, Mut dup) override {
    run([&](Operands& d) {
      kernels_->geglu_backward(n, d.in(dy, n), d.in(gate, n), d.in(up, n), d.out(dgate, n), d.out(dup, n));
    });
  }
  void relu(std::int64_t n, Const x, Mut y) override {
    run([&](Operands& d) { kernels_->relu(n, d.in(x, n), d.out(y, n)); });
  }
  void relu_backward(std::int64_t n, Const dy, Const y, Mut dx) override {
    run([&](Operands& d) { kernels_->relu_backward(n, d.in(dy, n), d.in(y, n), d.out(dx, n)); });
  }
  void scale(std::int64_t n, double factor, Const x, Mut y) override {
    run([&](Operands& d) { kernels_->scale(n, factor, d.in(x, n), d.out(y, n)); });
  }
  void rotary(const Rotary& o, Const x, Mut y) override {
    const std::int64_t n = o.rows * o.heads * o.width;
    run([&](Operands& d) { kernels_->rotary(o, d.in(x, n), d.out(y, n)); });
  }
  void add(std::int64_t n, Const a, Const b, Mut sum) override {
    run([&](Operands& d) { kernels_->add(n, d.in(a, n), d.in(b, n), d.out(sum, n)); });
  }
  void cast(std::int64_t n, bool accumulate, Const from, Mut to) override {
    run([&](Operands& d) { kernels_->cast(n, accumulate, d.in(from, n), d.out(to, n)); });
  }
  void dropout(const Dropout& o, Const x, Mut y) override {
    run([&](Operands& d) { kernels_->dropout(o, d.in(x, o.count), d.out(y, o.count)); });
  }
  void attention(const Attention& o, Const q, Const k, Const v, Const bias, Mut y, Mut log_sum_exp) override {
    const AttentionCounts n(o, !k.data);
    run([&](Operands& d) {
      kernels_->attention(o, d.in(q, n.q), d.in(k, n.k), d.in(v, n.k), d.in(bias, n.bias), d.out(y, n.y),
                          d.out(log_sum_exp, n.rows));
    });
  }
  void attention_backward(const Attention& o, Const dy, Const q, Const k, Const v, Const bias, Const y,
                          Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dbias) override {
    const AttentionCounts n(o, !k.data);
    run([&](Operands& d) {
      kernels_->attention_backward(o, d.in(dy, n.y), d.in(q, n.q), d.in(k, n.k), d.in(v, n.k), d.in(bias, n.bias),
                                   d.in(y, n.y), d.in(log_sum_exp, n.rows), d.out(dq, n.q), d.out(dk, n.k),
                                   d.out(dv, n.k), d.out(dbias, n.bias));
    });
  }
  void reattention(const Reattention& o, Const q, Const k, Const v, Const mixing, Const gain, Const bias, Mut y,
                   Mut log_sum_exp) override {
    const std::int64_t n = o.batch * o.seq * o.heads * o.width;
    run([&](Operands& d) {
      kernels_->reattention(o, d.in(q, n), d.in(k, n), d.in(v, n), d.in(mixing, o.heads * o.heads), d.in(gain, o.heads),
                            d.in(bias, o.heads), d.out(y, n), d.out(log_sum_exp, o.batch * o.heads * o.seq));
    });
  }
  void reattention_backward(const Reattention& o, bool accumulate, Const dy, Const q, Const k, Const v, Const mixing,
                            Const gain, Const bias, Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dmixing, Mut dgain,
                            Mut dbias) override {
    const std::int64_t n = o.batch * o.seq * o.heads * o.width, square = o.heads * o.heads;
    run([&](Operands& d) {
      kernels_->reattention_backward(
          o, accumulate, d.in(dy, n), d.in(q, n), d.in(k, n), d.in(v, n), d.in(mixing, square), d.in(gain, o.heads),
          d.in(bias, o.heads), d.in(log_sum_exp, o.batch * o.heads * o.seq), d.out(dq, n), d.out(dk, n), d.out(dv, n),
          d.out(dmixing, square), d.out(dgain, o.heads), d.out(dbias, o.heads));
    });
  }
  void relative_bias(const RelativeBias& o, Const table, Mut bias) override {
    run([&](Operands& d) {
      kernels_->relative_bias(o, d.in(table, o.buckets * o.heads), d.out(bias, o.heads * o.distances()));
    });
  }
  void relative_bias_backward(const RelativeBias& o, bool accumulate, Const dbias, Mut dtable) override {
    run([&](Operands& d) {
      kernels_->relative_bias_backward(o, accumulate, d.in(dbias, o.heads * o.distances()),
                                       d.out(dtable, o.buckets * o.heads));
    });
  }
  void image_tokens(const ImageTokens& o, Const patches, Const class_token, Const positions, Mut x) override {
    run([&](Operands& d) {
      kernels_->image_tokens(o, d.in(patches, o.images * (o.seq - 1) * o.cols), d.in(class_token, o.cols),
                             d.in(positions, o.seq * o.cols), d.out(x, o.images * o.seq * o.cols));
    });
  }
  void image_tokens_backward(const ImageTokens& o, bool accumulate, Const dx, Mut dpatches, Mut dclass_token,
                             Mut dpositions) override {
    run([&](Operands& d) {
      kernels_->image_tokens_backward(o, accumulate, d.in(dx, o.images * o.seq * o.cols),
                                      d.out(dpatches, o.images * (o.seq - 1) * o.cols), d.out(dclass_token, o.cols),
                                      d.out(dpositions, o.seq * o.cols));
    });
  }
  void first_token(const ImageTokens& o, Const x, Mut y) override {
    run([&](Operands& d) {
      kernels_->first_token(o, d.in(x, o.images * o.seq * o.cols), d.out(y, o.images * o.cols));
    });
  }
  void first_token_backward(const ImageTokens& o, Const dy, Mut dx) override {
    run([&](Operands& d) {
      kernels_->first_token_backward(o, d.in(dy, o.images * o.cols), d.out(dx, o.images * o.seq * o.cols));
    });
  }
  void embedding(const Embedding& o, Const tokens, Const token_table, Const position_table, Mut x) override {
    run([&](Operands& d) {
      kernels_->embedding(o, d.in(tokens, o.rows), d.in(token_table, o.vocab * o.cols),
                          d.in(position_table, positions(o) * o.cols), d.out(x, o.rows * o.cols));
    });
  }
  void embedding_backward(const Embedding& o, bool accumulate, Const dx, Const tokens, Mut d_token_table,
                          Mut d_position_table) override {
    run([&](Operands& d) {
      kernels_->embedding_backward(o, accumulate, d.in(dx, o.rows * o.cols), d.in(tokens, o.rows),
                                   d.out(d_token_table, o.vocab * o.cols),
                                   d.out(d_position_table, positions(o) * o.cols));
    });
  }
  void cross_entropy(const Rows& o, Const logits, Const targets, Mut loss, Mut log_sum_exp) override {
    run([&](Operands& d) {
      kernels_->cross_entropy(o, d.in(logits, o.rows * o.cols), d.in(targets, o.rows), d.out(loss, 2),
                              d.out(log_sum_exp, o.rows));
    });
  }
  void cross_entropy_backward(const Rows& o, float scale, Const logits, Const targets, Const log_sum_exp,
                              Mut dlogits) override {
    const std::int64_t n = o.rows * o.cols;
    run([&](Operands& d) {
      kernels_->cross_entropy_backward(o, scale, d.in(logits, n), d.in(targets, o.rows), d.in(log_sum_exp, o.rows),
                                       d.out(dlogits, n));
    });
  }
  void add_powers(int power, std::int64_t count, Const x, std::span<std::int64_t, ExactSum::words> sum) override {
    run([&](Operands& d) {
      auto* words = static_cast<std::int64_t*>(d.out({sum.data(), DType::i64}, ExactSum::words).data);
      kernels_->add_powers(power, count, d.in(x, count), std::span<std::int64_t, ExactSum::words>(words, sum.size()));
    });
  }
  void max_magnitude(std::int64_t count, Const x, std::int64_t& largest) override {
    run([&](Operands& d) {
      kernels_->max_magnitude(count, d.in(x, count),
                              *static_cast<std::int64_t*>(d.out({&largest, DType::i64}, 1).data));
    });
  }
  void adamw(const Update& o, Const grad, Mut parameter, Mut first, Mut second) override {
    run([&](Operands& d) {
      kernels_->adamw(o, d.in(grad, o.count), d.out(parameter, o.count), d.out(first, o.count), d.out(second, o.count));
    });
  }
  void adam(const Update& o, Const grad, Mut parameter, Mut first, Mut second) override {
    run([&](Operands& d) {
      kernels_->adam(o, d.in(grad, o.count), d.out(parameter, o.count), d.out(first, o.count), d.out(second, o.count));
    });
  }
  void sgd(const Update& o, Const grad, Mut parameter, Mut velocity) override {
    run([&](Operands& d) {
      kernels_->sgd(o, d.in(grad, o.count), d.out(parameter, o.count), d.out(velocity, o.count));
    });
  }
  void lion(const Update& o, Const grad, Mut parameter, Mut moment) override {
    run([&](Operands& d) {
      kernels_->lion(o, d.in(grad, o.count), d.out(parameter, o.count), d.out(moment, o.count));
    });
  }

 private:
  struct AttentionCounts {
    AttentionCounts(const Attention& o, bool packed)
        : y(o.batch * o.seq * o.heads * o.width),
          q(packed ? 3 * y : y),
          k(o.batch * o.seq * o.keys() * o.width),
          rows(o.batch * o.heads * o.seq),
          bias(o.heads * o.distances()) {}
    std::int64_t y, q, k, rows, bias;
  };
  static std::int64_t positions(const Embedding& o) { return std::max(o.positions, o.seq); }

  template <class Call>
  void run(Call call) {
    Operands operands(stream_);
    call(operands);
    operands.finish();
  }

  cudaStream_t stream_ = nullptr;
  void* workspace_ = nullptr;
  std::unique_ptr<cuda::Kernels> kernels_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu() { return std::make_unique<OnDevice>(); }

}  // namespace foreshard::kernels
