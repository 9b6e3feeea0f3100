#include "sim/closed_form/memory.hpp"

#include <algorithm>

namespace foreshard::sim::closed_form {
namespace {

double d(std::int64_t n) { return static_cast<double>(n); }

/// Numbers that a block saves for each token.
double saved_numbers(const Step& s) {
  const double kv = 2 * d(s.width) / d(s.heads) * d(s.kv_heads);
  const double attention = 2 * d(s.width) + kv;  // queries, keys, values, the result
  if (!s.gated_mlp) return 4 * d(s.width) + attention + 2 * d(s.ffn_width);
  const double norms = 6 * d(s.width), rotated = d(s.width) + kv / 2;  // norms keep a copy in fp32
  return norms + 2 * d(s.width) + attention + rotated + 4 * d(s.ffn_width);
}

/// Parameters with both tables where they are not one.
double all_parameters(const Step& s) { return parameters_of(s) + (s.tied_head ? 0 : d(s.vocab_size * s.width)); }

double root_parameters(const Step& s) { return d(s.vocab_size * s.width) * (s.tied_head ? 1 : 2); }

}  // namespace

double PeakMemory::peak() const { return std::max({at_loss, in_backward, at_update}); }

PeakMemory peak_memory(const Step& s, const Kept& k) {
  const double all = all_parameters(s), trained = all * k.trained_part, block = block_parameters(s);
  const double parameter_shards = s.shards_parameters ? s.shard_degree : 1;
  const double gradient_shards = s.shards_gradients ? s.shard_degree : 1;
  const double tokens = d(s.rows * s.seq_len);
  PeakMemory m;
  m.state = all * k.parameter / parameter_shards + trained * k.moments / s.shard_degree;
  if (s.shards_parameters && s.shard_degree > 1)
    m.gathered = (root_parameters(s) + (s.reshards_after_forward ? 2 : d(s.layers)) * block) * k.computed;
  else if (k.copies_parameters)
    m.gathered = all * k.computed;
  const double saved = k.activations * saved_numbers(s) * tokens * k.computed;
  const double input = tokens * d(s.width) * k.computed;
  m.activations = d(s.layers) * ((1 - s.recomputed) * saved + s.recomputed * input) + 2 * input;
  m.loss = k.loss_bytes * tokens * d(s.vocab_size);
  m.at_loss = m.state + m.gathered + m.activations + m.loss;
  const double gradients = trained * k.gradient / gradient_shards;
  const double on_its_way = k.trained_part * block * (k.computed + s.reduced_bytes);
  m.in_backward = m.state + m.gathered + m.activations + (s.recomputed > 0 ? saved : 0) + on_its_way +
                  gradients / d(std::max<std::int64_t>(1, s.layers));
  m.at_update = m.state + gradients + trained * k.update_temporaries / s.shard_degree;
  return m;
}

}  // namespace foreshard::sim::closed_form
