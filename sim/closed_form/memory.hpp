#pragma once
#include "sim/closed_form/step_time.hpp"

namespace foreshard::sim::closed_form {

/// Which tensors blocks save for backward: all that eager modules do; what is left when a compiler chooses, inputs of
/// products, norms and activations; when norms and activations are computed again by hand; or, of operators of every
/// block, attention's results and every other product's.
enum class Saving : std::uint8_t { eager, compiled, fewest, selected };

/// What training keeps on a GPU, in bytes an element.
struct Kept {
  Saving saving = Saving::eager;
  double parameter = 4, moments = 8, gradient = 4;  ///< AdamW with fp32 shards
  double gathered = 2;                              ///< of a block's parameters that are gathered
  double gathered_blocks = 2;                       ///< at once
  double computed = 2;                              ///< gathered parameters, activations, unsharded gradients
  double trained_part = 1;                          ///< of the parameters; moments and gradients are of these
  double adapter = 0;                               ///< a trained element, beside those that are frozen
  double table = 0;                                 ///< of parameters outside blocks, where it is another; 0: the same
  double activations = 1;                           ///< factor on the tensors that eager modules save
  double loss_bytes = 14;                           ///< at the loss, a token and vocabulary entry
  double update_temporaries = 4;                    ///< while shards are updated, a trained element of them
  bool updates_one_by_one = false;                  ///< units in turn, so that temporaries are of one
  bool adapts_all_products = false;                 ///< low-rank adapters, which need the inputs of frozen products
  double product_inputs = 0;                        ///< that frozen products keep besides, an element
  bool copies_parameters = false;  ///< not sharded, but cast for compute: the copies stay through backward
};

/// Peak of a steady step by phase, of live tensors.
struct PeakMemory {
  double state = 0;        ///< parameters and moments, between two steps
  double gathered = 0;     ///< unsharded parameters: the root's, and two blocks'
  double activations = 0;  ///< saved for backward
  double loss = 0;
  double at_loss = 0;      ///< all of the above at once
  double in_backward = 0;  ///< a block's gradient on its way besides, one in reduction, and shards'
  double at_update = 0;
  double lasting = 0;     ///< state, and gradients of earlier micro-batches
  double outlasting = 0;  ///< gradients of the shards and the update's temporaries
  double peak() const;
  /// What an allocator needs whose blocks fit what comes and goes so badly that it takes `fragmentation` times the
  /// bytes; what lasts lies together.
  double needed(double fragmentation) const;
  /// What it keeps: what outlasts the activations does not find its place among their blocks.
  double held(double fragmentation) const;
};

/// Source of the counts a block: Korthikanti et al., arXiv 2205.05198, without dropout and with fused attention; for
/// gated blocks the tensors of Hugging Face's eager modules.
PeakMemory peak_memory(const Step& step, const Kept& kept);

}  // namespace foreshard::sim::closed_form
