#pragma once
#include <bit>
#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string_view>

#include "base/dtype.hpp"
#include "base/exact_sum.hpp"
#include "kernels/matmul_route.hpp"
#include "kernels/rounding.hpp"

/// The numbers. Each kernel works on dense row-major arrays, is blocking, allocates nothing large, and is
/// deterministic: the same input bits give the same output bits, at any team size.
///
/// Activations, weights and gradients of activations have one type: f32, bf16 or f16 (reference kernels also f64).
/// Numbers of 16 bits are computed with in f32 and rounded once, when stored; their statistics (mean, rstd, log Σ exp)
/// are f32, and gradients of parameters (dbias, dgain, tables, products) either f32 or that type; what is accumulated
/// is added before rounding. NaN and infinity pass through. Attention may round in between: see AttentionRoutes.
namespace foreshard::kernels {

/// Typed memory that a kernel reads or writes; `data` is null for an absent optional operand.
struct Const {
  const void* data = nullptr;
  DType dtype = DType::f32;
};
struct Mut {
  void* data = nullptr;
  DType dtype = DType::f32;
};

struct Rows {
  std::int64_t rows = 0, cols = 0;
};
/// Queries and y are [batch·seq, heads·width], keys and values [batch·seq, key_heads·width].
struct Attention {
  std::int64_t batch = 0, seq = 0, heads = 0, width = 0;
  std::int64_t key_heads = 0;  ///< each serves heads / key_heads heads of queries, side by side; 0 means heads
  float alibi = 0;             ///< largest exponent of the slopes; 0 means no linear biases
  bool causal = true;          ///< token i sees tokens 0…i of its sequence, else all
  bool scaled = true;          ///< scores are scaled by 1/√width
  std::int64_t window = 0;     ///< of causal attention: token i sees the last so many of 0…i alone; 0 means all

  double scale() const;
  constexpr std::int64_t keys() const { return key_heads > 0 ? key_heads : heads; }
  constexpr std::int64_t group() const { return heads / keys(); }
  constexpr std::int64_t seen_by(std::int64_t token) const { return causal ? token + 1 : seq; }
  constexpr std::int64_t first_seen_by(std::int64_t token) const {
    return window > 0 && token >= window ? token - window + 1 : 0;
  }
  /// Tokens before this one see token j, of those from j on where attention is causal.
  constexpr std::int64_t last_to_see(std::int64_t j) const { return window > 0 && window < seq - j ? j + window : seq; }
  constexpr std::int64_t distances() const { return 2 * seq - 1; }  ///< of a key from a query: 1 − seq … seq − 1
  /// The score of token i with token j gets slope·(j − i) added: Press et al. 2022 (arXiv 2108.12409), section 3. Of
  /// the least power of two P ≥ heads, slopes are 2^(−alibi·n/P), n = 1…P; of other numbers of heads first the even n.
  double slope(std::int64_t head) const;
  constexpr double slope_exponent(std::int64_t head) const {  ///< of two
    const auto power = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(heads)));
    const std::int64_t even = 2 * (head + 1), n = power == heads ? head + 1 : even <= power ? even : even - power - 1;
    return -static_cast<double>(alibi) * static_cast<double>(n) / static_cast<double>(power);
  }
  auto operator<=>(const Attention&) const = default;
};
/// Attention in which each head sees what all of them see (Zhou et al. 2021, arXiv 2103.11886, "re-attention"): with
/// p_h the softmax over keys of q_h·k_h/√width, head g has the weights n_g = LayerNorm over heads of m_g = Σ_h
/// p_h·mixing[h, g], with gain and bias by head, and y_g = Σ n_g·v_g. q, k, v and y are [batch·seq, heads·width]; every
/// query sees all keys of its sequence.
struct Reattention {
  std::int64_t batch = 0, seq = 0, heads = 0, width = 0;
  float epsilon = 1e-5F;

  double scale() const;
  /// Shared memory that a block needs on a CUDA device: three numbers for each head and key of a query and one for each
  /// key, the query and its dy, the parameters and their gradients.
  constexpr std::int64_t shared_bytes() const {
    return 4 * ((3 * heads + 1) * seq + 2 * heads * width + 2 * heads * (heads + 2));
  }
};
/// How attention multiplies bf16 operands, as MatmulRoutes say it of products. Native rounds probabilities and the
/// gradients of scores to bf16 before they are multiplied; all sums and statistics are f32 by either route.
struct AttentionRoutes {
  MatmulRoute otherwise = MatmulRoute::widened;
  std::map<Attention, MatmulRoute> of_shape;

  MatmulRoute of(const Attention& shape) const {
    const auto found = of_shape.find(shape);
    return found == of_shape.end() ? otherwise : found->second;
  }
};
/// Rows of heads·width numbers; row r has position p = r mod seq. In each head element j and j + width/2 are turned by
/// the angle p·base^(−2j/width), or back: Su et al. 2021 (arXiv 2104.09864), in the layout of Hugging Face's Llama.
struct Rotary {
  std::int64_t rows = 0, heads = 0, width = 0, seq = 0;
  double base = 10000;
  bool back = false;

  double frequency(std::int64_t j) const;  ///< radians from one position to the next
};
struct Embedding {
  std::int64_t rows = 0, cols = 0, vocab = 0, seq = 0;  ///< row r has position r mod seq
  std::int64_t positions = 0;                           ///< rows of the position table; fewer than seq means seq
  bool shifted = false;                                 ///< rows are of targets, and read those one place before

  /// The token of row r. Shifted: of the target before, or 0 where that is ignored or r begins its sequence, as T5's
  /// decoder starts.
  constexpr std::int32_t token(const std::int32_t* tokens, std::int64_t row) const {
    if (!shifted) return tokens[row];
    return row % seq == 0 || tokens[row - 1] < 0 ? 0 : tokens[row - 1];
  }
};
/// One number for each head and distance of key and query, shared by distances of one bucket: Raffel et al. 2019 (arXiv
/// 1910.10683), section 2.1, with the buckets of Hugging Face's T5.
struct RelativeBias {
  std::int64_t heads = 0, seq = 0;
  std::int64_t buckets = 32;
  std::int64_t max_distance = 128;  ///< from here on all are in the last bucket
  bool both_ways = true;            ///< keys behind the query have half of the buckets, else the first one

  constexpr std::int64_t distances() const { return 2 * seq - 1; }
  std::int64_t bucket(std::int64_t distance) const;  ///< of a key at position query + distance
};
/// Images of seq tokens of cols numbers: a class token, then seq − 1 patches.
struct ImageTokens {
  std::int64_t images = 0, seq = 0, cols = 0;
};
/// Element e = first + i is kept iff uniform(word e mod 4 of philox(key, stream, e / 4)) ≥ probability, and then
/// multiplied by 1/(1 − probability), rounded to the type it is computed in. `first` is its place in the whole tensor,
/// so that ranks and micro-batches agree.
struct Dropout {
  std::int64_t count = 0;
  float probability = 0;
  std::uint64_t key = 0, stream = 0, first = 0;
};
/// One optimizer step of `count` parameters, element by element. g is the gradient times `grad_scale`, then cut to
/// ±clip_value. Each optimizer reads what its formula names; `step` counts updates from 1, for the bias corrections.
struct Update {
  std::int64_t count = 0, step = 1;
  double learning_rate = 0, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0, grad_scale = 1;
  double clip_value = std::numeric_limits<double>::infinity(), momentum = 0;
  bool nesterov = false;
  Rounding rounding = {};  ///< of parameters in bf16
};

/// Exact, order-independent sums: fixed-point limbs of 32 bits held in 64-bit words, so that sums of words of many
/// ranks are sums of the numbers. Covers every finite product of two fp32 numbers and every double of magnitude 2^-300
/// to 2^300. Words are plain integers: zero them to begin, add word by word to merge.
struct ExactSum {
  static constexpr int words = exact_sum_words;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  ///< "cpu" or "reference"

  virtual void matmul(const Matmul&, Const a, Const b, Const bias, Mut c) = 0;
  /// Applies to later products of bf16 matrices; call it while no product runs. Those of f16 are always widened.
  virtual void set_matmul_routes(const MatmulRoutes&) {}
  /// The most memory that one thread of the team keeps for `matmul` of operands of these types, in bytes.
  virtual std::int64_t matmul_scratch_bytes(const Matmul&, DType /*operands*/, DType /*result*/) const { return 0; }
  virtual void bias_grad(const Rows&, bool accumulate, Const dy, Mut dbias) = 0;

  /// y = (x − mean)·rstd·gain (+ bias if present) by row; with `residual` x is replaced by x + residual, which is
  /// written to `sum`.
  virtual void layer_norm(const Rows&, float epsilon, Const x, Const residual, Const gain, Const bias, Mut sum, Mut y,
                          Mut mean, Mut rstd) = 0;
  /// dx = gradient through the norm (+ residual_grad if present); dgain and dbias by column; what is absent of the
  /// three is not computed. dx may be dy or residual_grad.
  virtual void layer_norm_backward(const Rows&, bool accumulate, Const dy, Const x, Const gain, Const mean, Const rstd,
                                   Const residual_grad, Mut dx, Mut dgain, Mut dbias) = 0;

  /// y = x·rstd·gain with rstd = 1/√(mean(x²) + ε) by row (Zhang & Sennrich 2019, arXiv 1910.07467); `residual` and
  /// `sum` as in layer_norm.
  virtual void rms_norm(const Rows&, float epsilon, Const x, Const residual, Const gain, Mut sum, Mut y, Mut rstd) = 0;
  /// As layer_norm_backward.
  virtual void rms_norm_backward(const Rows&, bool accumulate, Const dy, Const x, Const gain, Const rstd,
                                 Const residual_grad, Mut dx, Mut dgain) = 0;

  /// 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
  virtual void gelu(std::int64_t count, Const x, Mut y) = 0;
  virtual void gelu_backward(std::int64_t count, Const dy, Const x, Mut dx) = 0;  ///< dx may be dy
  /// 0.5·x·(1 + erf(x/√2)).
  virtual void gelu_exact(std::int64_t count, Const x, Mut y) = 0;
  virtual void gelu_exact_backward(std::int64_t count, Const dy, Const x, Mut dx) = 0;  ///< dx may be dy
  /// gate/(1 + e^−gate)·up (Shazeer 2020, arXiv 2002.05202).
  virtual void swiglu(std::int64_t count, Const gate, Const up, Mut y) = 0;
  virtual void swiglu_backward(std::int64_t count, Const dy, Const gate, Const up, Mut dgate,
                               Mut dup) = 0;  ///< dgate may be dy
  /// The same with GELU in its tanh form in place of the logistic gate: gelu(gate)·up.
  virtual void geglu(std::int64_t count, Const gate, Const up, Mut y) = 0;
  virtual void geglu_backward(std::int64_t count, Const dy, Const gate, Const up, Mut dgate,
                              Mut dup) = 0;  ///< dgate may be dy
  virtual void relu(std::int64_t count, Const x, Mut y) = 0;
  virtual void relu_backward(std::int64_t count, Const dy, Const y, Mut dx) = 0;  ///< dx may be dy
  virtual void scale(std::int64_t count, double factor, Const x, Mut y) = 0;      ///< y may be x
  virtual void rotary(const Rotary&, Const x, Mut y) = 0;                         ///< y may be x
  virtual void add(std::int64_t count, Const a, Const b, Mut sum) = 0;            ///< sum may be a or b
  /// to = (accumulate ? to : 0) + from, each of any type; they do not overlap.
  virtual void cast(std::int64_t count, bool accumulate, Const from, Mut to) = 0;
  virtual void dropout(const Dropout&, Const x, Mut y) = 0;  ///< y may be x; its own backward

  /// log_sum_exp is [batch, heads, seq]. Where k and v are absent, q is all three, [batch·seq, 3·heads·width]: all
  /// queries of a token, then its keys, then its values. Where there is a bias [heads, distances], scores of head h and
  /// a key at distance d are higher by its element (h, d + seq − 1).
  virtual void attention(const Attention&, Const q, Const k, Const v, Const bias, Mut y, Mut log_sum_exp) = 0;
  virtual void attention_backward(const Attention&, Const dy, Const q, Const k, Const v, Const bias, Const y,
                                  Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dbias) = 0;
  /// Applies to later attention of bf16 operands; call it while none runs.
  virtual void set_attention_routes(const AttentionRoutes&) {}
  void attention(const Attention& o, Const q, Const k, Const v, Mut y, Mut log_sum_exp) {
    attention(o, q, k, v, {}, y, log_sum_exp);
  }
  void attention_backward(const Attention& o, Const dy, Const q, Const k, Const v, Const y, Const log_sum_exp, Mut dq,
                          Mut dk, Mut dv) {
    attention_backward(o, dy, q, k, v, {}, y, log_sum_exp, dq, dk, dv, {});
  }
  void attention(const Attention& o, Const qkv, Mut y, Mut log_sum_exp) { attention(o, qkv, {}, {}, y, log_sum_exp); }
  void attention_backward(const Attention& o, Const dy, Const qkv, Const y, Const log_sum_exp, Mut dqkv) {
    attention_backward(o, dy, qkv, {}, {}, y, log_sum_exp, dqkv, {}, {});
  }

  /// mixing is [heads, heads], gain and bias [heads], log_sum_exp [batch, heads, seq], of the scores.
  virtual void reattention(const Reattention&, Const q, Const k, Const v, Const mixing, Const gain, Const bias, Mut y,
                           Mut log_sum_exp) = 0;
  /// What is absent of the six is not computed; `accumulate` is about the last three.
  virtual void reattention_backward(const Reattention&, bool accumulate, Const dy, Const q, Const k, Const v,
                                    Const mixing, Const gain, Const bias, Const log_sum_exp, Mut dq, Mut dk, Mut dv,
                                    Mut dmixing, Mut dgain, Mut dbias) = 0;

  /// Without a position table x is the token's row.
  virtual void embedding(const Embedding&, Const tokens, Const token_table, Const position_table, Mut x) = 0;
  /// Each table's gradient is a sum over its rows' uses, in order of rows; an absent one is not computed.
  virtual void embedding_backward(const Embedding&, bool accumulate, Const dx, Const tokens, Mut d_token_table,
                                  Mut d_position_table) = 0;

  /// bias [heads, distances] of a table [buckets, heads].
  virtual void relative_bias(const RelativeBias&, Const table, Mut bias) = 0;
  virtual void relative_bias_backward(const RelativeBias&, bool accumulate, Const dbias, Mut dtable) = 0;

  /// x [images·seq, cols] of patches [images·(seq − 1), cols], a class token [cols] and positions [seq, cols].
  virtual void image_tokens(const ImageTokens&, Const patches, Const class_token, Const positions, Mut x) = 0;
  /// What is absent is not computed; `accumulate` is about the two parameters.
  virtual void image_tokens_backward(const ImageTokens&, bool accumulate, Const dx, Mut dpatches, Mut dclass_token,
                                     Mut dpositions) = 0;
  /// y [images, cols]: the first token of each image; and dx [images·seq, cols], zero for the others.
  virtual void first_token(const ImageTokens&, Const x, Mut y) = 0;
  virtual void first_token_backward(const ImageTokens&, Const dy, Mut dx) = 0;

  /// loss (f64[2]) gets {Σ token losses, valid tokens} added; target −1 is ignored; log_sum_exp is [rows].
  virtual void cross_entropy(const Rows&, Const logits, Const targets, Mut loss, Mut log_sum_exp) = 0;
  /// dlogits = scale·(softmax − one-hot), 0 in ignored rows; may be logits.
  virtual void cross_entropy_backward(const Rows&, float scale, Const logits, Const targets, Const log_sum_exp,
                                      Mut dlogits) = 0;

  /// Adds Σ |x|^power to `sum`, power 1, 2 or 3 (cubes: of 2^−30·|x|). Leaves of 8 consecutive elements are summed in
  /// double, pairwise, then added exactly; so the result does not depend on how a flat array is cut, if it is cut at
  /// multiples of 8.
  virtual void add_powers(int power, std::int64_t count, Const x, std::span<std::int64_t, ExactSum::words> sum) = 0;
  /// largest = max(largest, max |x|), as the bits of a double: not a number is above infinity, so nothing hides it.
  virtual void max_magnitude(std::int64_t count, Const x, std::int64_t& largest) = 0;

  // Updates. The gradient is f32, bf16 or f16, parameters are f32 or bf16, the rest is f32 (reference: all but bf16
  // parameters also f64). An update is computed in f32 (reference: in f64, then rounded to f32 if the parameter is
  // bf16) and stored as `rounding` says.
  /// m = β₁m + (1 − β₁)g, v = β₂v + (1 − β₂)g², m̂ = m/(1 − β₁ᵗ), v̂ = v/(1 − β₂ᵗ); p −= lr·(decay·p + m̂/(√v̂ + ε)).
  /// Decoupled weight decay (Loshchilov & Hutter 2019), as torch.optim.AdamW.
  virtual void adamw(const Update&, Const grad, Mut parameter, Mut first_moment, Mut second_moment) = 0;
  /// The same with the decay in the gradient, g += decay·p (Kingma & Ba 2015), as torch.optim.Adam.
  virtual void adam(const Update&, Const grad, Mut parameter, Mut first_moment, Mut second_moment) = 0;
  /// g += decay·p, v = momentum·v + g; p −= lr·v, or lr·(g + momentum·v) if `nesterov`; lr·g where velocity is absent.
  /// As torch.optim.SGD without dampening.
  virtual void sgd(const Update&, Const grad, Mut parameter, Mut velocity) = 0;
  /// p −= lr·(decay·p + sign(β₁m + (1 − β₁)g)), then m = β₂m + (1 − β₂)g (Chen et al. 2023, arXiv 2302.06675).
  virtual void lion(const Update&, Const grad, Mut parameter, Mut moment) = 0;
};

/// Obvious loops that sum in double: the truth that others are tested against. f32, f64, bf16 and f16.
std::unique_ptr<Backend> make_reference();

/// oneDNN and vectorised loops for this processor; runs on the caller's OpenMP team. f32, bf16 and f16.
std::unique_ptr<Backend> make_cpu();

/// The norm that words stand for: of `power` 1, 2 or 3 the root of an exact sum of all shards' powers; of infinity the
/// largest of the words, one a shard. Not finite if any element was not.
double norm_of(float power, std::span<const std::int64_t> words);

/// The number an exact sum stands for, correctly rounded up to one unit in the last place.
double value_of(std::span<const std::int64_t, ExactSum::words> sum);

/// Adds one finite double exactly (of magnitude 2^-300 to 2^300; smaller ones count as 0). Non-finite values, and
/// finite ones of 2^301 or more, set a mark that makes `value_of` return NaN and that survives merging. At most 2^29
/// calls between merges.
void add_exact(std::span<std::int64_t, ExactSum::words> sum, double value);

}  // namespace foreshard::kernels
