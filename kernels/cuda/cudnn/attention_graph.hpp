#pragma once
#include "kernels/backend.hpp"
#include "kernels/cuda/cudnn/graph.hpp"

namespace foreshard::kernels::cuda::cudnn {

/// Where the rows of queries, keys and values lie: each kind dense and by itself, or all of a token in one row of
/// 3·heads·width.
enum class Layout : std::uint8_t { apart, packed };

/// Whether attention has a graph: operands of 16 bits, no linear biases, a window only if causal, a token.
bool has_graph(const Attention&, DType);

/// y and log_sum_exp of q, k and v, as Backend::attention says. Operands are in `type`, intermediates and statistics in
/// f32, but probabilities are rounded to `type` before they are multiplied. cuDNN knows attention by the order of its
/// operations; this is the order in which NVIDIA's cudnn_frontend 1.x writes it for releases before 9.21.
Graph forward_graph(const Attention&, DType type, Layout);

/// dq, dk and dv of dy, q, k, v, y and log_sum_exp; row_sums is scratch in between. dq is one product over all keys,
/// not a sum to which blocks of keys add in any order: what cudnn_frontend makes where it is asked for determinism.
Graph backward_graph(const Attention&, DType type, Layout);

}  // namespace foreshard::kernels::cuda::cudnn
