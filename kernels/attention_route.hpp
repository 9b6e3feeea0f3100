#pragma once
#include "kernels/backend.hpp"

namespace foreshard::kernels {

/// As choose_matmul_route, of attention with bf16 operands and its backward: both are run on one head of keys and the
/// queries that it serves, of at most 1024 tokens, by which no route becomes faster than the other. The backend is left
/// with the route chosen for attention of every shape.
MatmulRoute choose_attention_route(Backend&, const Attention&, bool biased);

}  // namespace foreshard::kernels
