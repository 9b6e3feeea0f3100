#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace foreshard::model {

/// What is computed or moved. The sizes each kind uses are given as its line of `Sizes`; operands in order after it.
enum class OpKind : std::uint8_t {
  // Forward. Sizes; inputs -> outputs.
  embedding,      ///< rows tokens, cols width, inner vocabulary, seq; tokens, token table, position table? -> x
                  ///< (scalar = 1: of targets, each row that of the target before; 0 where that is ignored or none)
  layer_norm,     ///< rows, cols; x, gain, bias? -> y, mean, rstd
  linear,         ///< rows tokens, cols out features, inner in features; x, weight [cols, inner], bias? -> y
  attention,      ///< batch, seq, heads, inner head width, rows most keys of a query (0: all before it); qkv
                  ///< [batch*seq, 3*heads*inner] -> y, log-sum-exp [batch*heads*seq]. Where cols, the width of a
                  ///< token's keys, is given: q, k, v apart; k and v [batch*seq, cols], each head of which serves
                  ///< heads*inner/cols heads of q (scalar = largest exponent of ALiBi's slopes; 0: no linear biases).
                  ///< With a bias of relative_bias as a fourth operand, scores are that much higher, and not scaled
  gelu,           ///< rows, cols; x -> y (tanh form)
  add,            ///< rows, cols; a, b -> sum
  dropout,        ///< rows, cols; x -> y (scalar = drop probability, stream = which dropout)
  cast,           ///< rows, cols; x -> the same numbers in another type
  cross_entropy,  ///< rows, cols vocabulary; logits, targets -> loss sum and count (f64[2]), log-sum-exp [rows]
  // Backward.
  embedding_backward,      ///< as embedding; dx, tokens -> d token table?, d position table?
  layer_norm_backward,     ///< rows, cols; dy, x, gain, mean, rstd, residual gradient? -> dx, d gain, d bias?
  linear_input_grad,       ///< rows, cols, inner as linear; dy, weight -> dx
  linear_weight_grad,      ///< rows, cols, inner as linear; dy, x -> d weight
  linear_bias_grad,        ///< rows, cols; dy -> d bias
  attention_backward,      ///< as attention; dy, qkv (or q, k, v), y, log-sum-exp -> dqkv (or dq, dk, dv)
  gelu_backward,           ///< rows, cols; dy, x -> dx
  cross_entropy_backward,  ///< rows, cols; logits, targets, log-sum-exp -> dlogits, not yet divided by the token count
  // Made by lowering.
  add_layer_norm,  ///< rows, cols; a, b, gain, bias -> sum, y, mean, rstd
  // Made by scheduling. `rows` is a count of elements.
  load_batch,      ///< rows tokens; -> tokens, targets
  zero_fill,       ///< rows; -> x
  all_gather,      ///< rows elements of the whole; shard -> whole
  cast_shard,      ///< rows elements of a shard; shard -> this rank's part of the whole, in its type
  fetch,           ///< rows; host shard -> the same on the device (accumulating: added)
  offload,         ///< rows; x on the device -> host shard (accumulating: added)
  retain,          ///< rows elements kept; whole -> this rank's part of it among its inner group
  reduce_scatter,  ///< rows elements of the whole; whole -> shard
  all_reduce,      ///< rows; x -> sum over the group
  grad_norm,       ///< rows; gradient shard -> words of its norm (accumulating; scalar = which norm)
  sum_norm,        ///< rows words of the exact sum; x -> sum over the group, in place
  sum_loss,        ///< rows words; loss of this rank -> loss and count over all ranks
  // Updates of a shard by its optimizer. rows; gradient, norm, loss -> parameter and the optimizer's moments (in
  // place).
  adamw,         ///< first moment, second moment
  adam,          ///< first moment, second moment
  sgd,           ///< none
  sgd_momentum,  ///< velocity
  lion,          ///< moment
  // Made by scheduling.
  gather_norm,  ///< rows words of all members; largest magnitude of this shard -> of every member's
  // Of Llama's family; at the end, since traces keep kinds as numbers. Forward.
  rms_norm,  ///< rows, cols; x, gain -> y, rstd (scalar = epsilon)
  rotary,    ///< rows, cols heads*inner, inner head width, seq; x -> x turned by its position (scalar = base)
  swiglu,    ///< rows, cols; gate, up -> y
  // Backward, and made by lowering.
  rms_norm_backward,  ///< rows, cols; dy, x, gain, rstd, residual gradient? -> dx, d gain
  rotary_backward,    ///< as rotary; dy -> dx
  swiglu_backward,    ///< rows, cols; dy, gate, up -> d gate, d up
  add_rms_norm,       ///< rows, cols; a, b, gain -> sum, y, rstd
  // Of MPT's family.
  gelu_exact,           ///< rows, cols; x -> y (erf form)
  gelu_exact_backward,  ///< rows, cols; dy, x -> dx
  // Of T5, ViT and profiles. Forward.
  full_attention,  ///< as attention of q, k, v apart and a bias?, but of every query with all keys, of which a sequence
                   ///< has rows (scalar = 1: scores are scaled, 0: they are not)
  relative_bias,   ///< rows distances of key and query, cols heads, inner buckets, seq the distance from which on all
                   ///< are alike; table [inner, cols] -> bias [cols, rows] (scalar = 1: keys on either side of the
                   ///< query have buckets)
  relu,            ///< rows, cols; x -> y
  geglu,           ///< rows, cols; gate, up -> gelu(gate)·up (tanh form)
  load_images,     ///< rows patches, cols values of one; -> x
  image_tokens,    ///< rows tokens, cols width, seq tokens of an image; patches, class token, position table -> x: the
                   ///< class token before each image's patches, and positions added
  first_token,     ///< rows sequences, cols width, seq; x -> their first tokens
  opaque,          ///< rows samples, cols values of a result, inner FLOPs of a sample, seq those of its backward; x?,
                   ///< parameters? -> y, what backward reads? (scalar = part of a device's peak that it reaches)
  // Backward.
  full_attention_backward,  ///< as full_attention; dy, its operands and results -> dq, dk, dv, d bias?
  relative_bias_backward,   ///< as relative_bias; d bias -> d table
  relu_backward,            ///< rows, cols; dy, y -> dx
  geglu_backward,           ///< rows, cols; dy, gate, up -> d gate, d up
  image_tokens_backward,    ///< as image_tokens; dx -> d patches, d class token, d position table
  opaque_backward,          ///< as opaque; dy, parameters?, what is kept? -> dx?, d parameters?
  first_token_backward,     ///< as first_token; dy -> dx, nothing for other tokens
  scale,                    ///< rows, cols; x -> x/√cols, also in backward
  // Made by the pass of the same name, before each use of a packed weight.
  dequantise,  ///< rows out features, cols in features; packed words -> weight
  // Of DeepViT.
  reattention,  ///< as full_attention of scaled scores, but that heads are mixed and normalised: q, k, v, mixing
                ///< [heads, heads], gain, bias [heads] -> y, log-sum-exp (scalar = epsilon)
  reattention_backward,  ///< as reattention; dy, q, k, v, mixing, gain, bias, log-sum-exp -> dq?, dk?, dv?, d mixing?,
                         ///< d gain?, d bias?
  count_
};

/// Lower-case name as in this enum, e.g. "linear_weight_grad".
std::string_view name_of(OpKind kind);
/// The kind of that name; none if there is none.
std::optional<OpKind> find_op_kind(std::string_view name);

/// Whether a kind is an optimizer's update, and how many moments of the parameter's size it keeps.
bool is_update(OpKind kind);
int moment_count(OpKind update);

/// Extents an operator works on; a kind uses those that its line in OpKind names, the others are 0.
struct Sizes {
  std::int64_t rows = 0, cols = 0, inner = 0, batch = 0, seq = 0, heads = 0;
  friend bool operator==(const Sizes&, const Sizes&) = default;
};

/// Exact cost facts of one execution.
struct Cost {
  double flops = 0;          ///< multiplications and additions; attention counts only pairs that its mask leaves
  double read_bytes = 0;     ///< operands read once
  double written_bytes = 0;  ///< results written once
};

/// FLOPs of a compute operator: 2·m·n·k for each matrix product; element-wise operators count their arithmetic.
double flops(OpKind kind, const Sizes& sizes);

}  // namespace foreshard::model
