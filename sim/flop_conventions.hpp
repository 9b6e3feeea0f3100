#pragma once
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace foreshard::sim {

/// What counts of FLOPs are made from: of a whole model, in one training step of one rank.
struct FlopBasis {
  double parameters = 0;        ///< all, each once
  double input_tables = 0;      ///< of them, of the token table, if no product reads it too
  double product_weights = 0;   ///< Σ in·out of the matrix products, the head's among them
  double gradient_weights = 0;  ///< the same of backward's products: twice as much where nothing is frozen
  double attention_widths = 0;  ///< Σ over attention layers of heads · head width · length that a token may attend to
  double tokens = 0;            ///< of the step
  bool recomputes = false;      ///< all of forward runs twice
};

/// Taken from the plan's own operators, so for every model family.
FlopBasis flop_basis(const plan::Plan& plan);

/// One way to count the FLOPs of forward and backward.
enum class FlopConvention {
  six_n,       ///< 6·N: Kaplan et al., arXiv 2001.08361, but with N all parameters; BigScience's "model" FLOPs
  eight_n,     ///< 8·N: BigScience's "hardware" FLOPs, forward again in backward
  palm,        ///< 6·N + 12·Σ widths: Chowdhery et al., arXiv 2204.02311, appendix B; nanoGPT
  torchtitan,  ///< 6·(N − input table, unless tied) + 12·Σ widths; Llama-3's count, not halved for the causal mask
  causal_half,  ///< the same with 6·Σ widths: each token attends to half of the length on average
  llm_foundry,  ///< 3·(2·N + 4·Σ widths): palm's number, by MosaicML's formula
  products,     ///< 2·weights of all products + 12·Σ widths: what matrix units do, no tables, norms or biases
  hardware      ///< products with what is recomputed: 2·weights + 4·Σ widths more if all of forward is
};
std::string_view name_of(FlopConvention convention);
std::vector<FlopConvention> all_flop_conventions();

/// FLOPs per token.
double flops_per_token(const FlopBasis& basis, FlopConvention convention);

/// FLOPs of an iteration of `sequences` by the Megatron-LM paper (Narayanan et al., arXiv 2104.04473, equation 3):
/// 96·B·s·l·h²·(1 + s/(6h) + V/(16·l·h)) with everything recomputed, 72 instead of 96 without.
double megatron_flops(double sequences, double seq, double layers, double width, double vocabulary, bool recompute);

/// Part of the peak that a rank's useful work reaches: FLOPs of a step / seconds / peak.
double flops_utilization(double flops, double seconds, double peak_flops_per_s);

}  // namespace foreshard::sim
