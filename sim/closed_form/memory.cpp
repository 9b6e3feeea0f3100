#include "sim/closed_form/memory.hpp"

#include <algorithm>

namespace foreshard::sim::closed_form {
namespace {

double d(std::int64_t n) { return static_cast<double>(n); }

/// Queries, keys, values and the result.
double of_attention(const Step& s) { return 2 * d(s.width) + 2 * d(s.width) / d(s.heads) * d(s.kv_heads); }

/// Gated: norms keep a copy in fp32, rotary embedding its input. Frozen products need no input.
double eager(const Step& s, bool frozen) {
  if (!s.gated_mlp) return 4 * d(s.width) + of_attention(s) + 2 * d(s.ffn_width);
  const double norms = 6 * d(s.width), rotated = of_attention(s) / 2;
  const double inputs = frozen ? d(s.width) : 2 * d(s.width) + d(s.ffn_width);
  return norms + inputs + of_attention(s) + rotated + 3 * d(s.ffn_width);
}

double inputs_of_products(const Step& s) { return 3 * d(s.width) + d(s.ffn_width); }

/// Inputs of both norms; of the activation.
double fewest(const Step& s) { return 2 * d(s.width) + of_attention(s) + (s.gated_mlp ? 2 : 1) * d(s.ffn_width); }

/// Besides what products work on, but attention's result, which is there once.
double compiled(const Step& s) { return fewest(s) + inputs_of_products(s) - d(s.width); }

/// The block's input, attention's result, and of its products' results half.
double selected(const Step& s) {
  const double products = of_attention(s) + d(s.width) + (s.gated_mlp ? 2 : 1) * d(s.ffn_width);
  return 2 * d(s.width) + products / 2;
}

/// Numbers that a block saves for each token.
double saved_numbers(const Step& s, const Kept& k) {
  if (k.saving == Saving::selected) return selected(s);
  if (k.saving == Saving::fewest) return fewest(s);
  return k.saving == Saving::compiled ? compiled(s) : eager(s, k.trained_part < 1 && !k.adapts_all_products);
}

/// Parameters with both tables where they are not one.
double all_parameters(const Step& s) { return parameters_of(s) + (s.tied_head ? 0 : d(s.vocab_size * s.width)); }

double root_parameters(const Step& s) { return d(s.vocab_size * s.width) * (s.tied_head ? 1 : 2); }

}  // namespace

double PeakMemory::peak() const { return std::max({at_loss, in_backward, at_update}); }

double PeakMemory::needed(double fragmentation) const { return lasting + fragmentation * (peak() - lasting); }

double PeakMemory::held(double fragmentation) const {
  const double with_activations = std::max(at_loss, in_backward) - lasting;
  return std::max(lasting + fragmentation * with_activations + outlasting, needed(fragmentation));
}

PeakMemory peak_memory(const Step& s, const Kept& k) {
  const double all = all_parameters(s), trained = all * k.trained_part, block = block_parameters(s);
  const double parameter_shards = s.shards_parameters ? s.shard_degree : 1;
  const double gradient_shards = s.shards_gradients ? s.shard_degree : 1;
  const double tokens = d(s.rows * s.seq_len);
  const double blocks = s.reshards_after_forward ? std::min(k.gathered_blocks, d(s.layers)) : d(s.layers);
  PeakMemory m;
  const double tables = k.table > 0 ? root_parameters(s) * (k.table - k.parameter) : 0;
  const double adapters = k.trained_part < 1 ? trained * k.adapter : 0;
  m.state = (all * k.parameter + tables + adapters) / parameter_shards + trained * k.moments / s.shard_degree;
  if (s.shards_parameters && s.shard_degree > 1)
    m.gathered = root_parameters(s) * k.computed + blocks * block * k.gathered;
  else if (k.copies_parameters)
    m.gathered = all * k.computed;
  const double saved =
      (k.activations * saved_numbers(s, k) * k.computed + k.product_inputs * inputs_of_products(s)) * tokens;
  const double input = tokens * d(s.width) * k.computed;
  m.activations = d(s.layers) * ((1 - s.recomputed) * saved + s.recomputed * input) + 2 * input;
  m.loss = k.loss_bytes * tokens * d(s.vocab_size);
  const double gradients = trained * k.gradient / gradient_shards;
  const double of_before = s.micro_batches > 1 ? gradients : 0;  // of earlier micro-batches
  m.at_loss = m.state + of_before + m.gathered + m.activations + m.loss;
  const double in_reduction = s.shards_parameters ? s.reduced_bytes : 0;  // of the block behind
  const double on_its_way = k.trained_part * block * (k.computed + s.reduced_bytes + in_reduction);
  m.in_backward = m.state + m.gathered + m.activations + (s.recomputed > 0 ? saved : 0) + on_its_way +
                  std::max(of_before, gradients / d(std::max<std::int64_t>(1, s.layers)));
  const double updated = k.updates_one_by_one ? trained / d(std::max<std::int64_t>(1, s.layers)) : trained;
  m.at_update = m.state + gradients + updated * k.update_temporaries / s.shard_degree;
  m.lasting = m.state + of_before;
  m.outlasting = m.at_update - m.lasting;
  return m;
}

}  // namespace foreshard::sim::closed_form
