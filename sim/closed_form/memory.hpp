#pragma once
#include "sim/closed_form/step_time.hpp"

namespace foreshard::sim::closed_form {

/// Which tensors blocks save for backward: all that eager modules do; what a compiler leaves when it computes norms and
/// activations again; or, of operators of every block, attention's results and every other product's.
enum class Saving : std::uint8_t { eager, compiled, selected };

/// What training keeps on a GPU, in bytes an element.
struct Kept {
  Saving saving = Saving::eager;
  double parameter = 4, moments = 8, gradient = 4;  ///< AdamW with fp32 shards
  double computed = 2;                              ///< gathered parameters, activations, unsharded gradients
  double trained_part = 1;                          ///< of the parameters; moments and gradients are of these
  double table = 0;                                 ///< of parameters outside blocks, where it is another; 0: the same
  double activations = 1;                           ///< factor on the tensors that eager modules save
  double loss_bytes = 14;                           ///< at the loss, a token and vocabulary entry
  double update_temporaries = 4;                    ///< while shards are updated, a trained element of them
  bool copies_parameters = false;  ///< not sharded, but cast for compute: the copies stay through backward
};

/// Peak of a steady step by phase, of live tensors.
struct PeakMemory {
  double state = 0;        ///< parameters and moments, between two steps
  double gathered = 0;     ///< unsharded parameters: the root's, and two blocks'
  double activations = 0;  ///< saved for backward
  double loss = 0;
  double at_loss = 0;      ///< all of the above at once
  double in_backward = 0;  ///< a block's gradient on its way besides, and half of all shards'
  double at_update = 0;
  double outlasting = 0;  ///< gradients of the shards and the update's temporaries
  double peak() const;
  /// What an allocator needs that splits `fragmentation` times the peak into blocks: what outlasts the activations does
  /// not find its place among them.
  double held(double fragmentation) const;
};

/// Source of the counts a block: Korthikanti et al., arXiv 2205.05198, without dropout and with fused attention; for
/// gated blocks the tensors of Hugging Face's eager modules.
PeakMemory peak_memory(const Step& step, const Kept& kept);

}  // namespace foreshard::sim::closed_form
