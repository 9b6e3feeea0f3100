#include "sim/runtimes/eager_model.hpp"

#include <algorithm>

namespace foreshard::sim::torch {

UnitShapes unit_shapes(const Model& model) {
  return std::visit([](const auto& of_kind) { return unit_shapes(of_kind); }, model);
}

std::int64_t buffer_elements(const Model& model) {
  const auto* decoder = std::get_if<Decoder>(&model);
  return decoder ? buffer_elements(*decoder) : 0;
}

namespace {

std::int64_t attention_widths_of(const Decoder& d, std::int64_t seq) {
  std::int64_t lengths = 0;
  for (std::int64_t layer = 0; layer < d.layers; ++layer)
    lengths += d.has_window(layer) ? std::min(d.window, seq) : seq;
  return lengths * d.attention_width();
}
std::int64_t attention_widths_of(const T5& t5, std::int64_t seq) { return 3 * t5.layers * t5.attention_width() * seq; }
std::int64_t attention_widths_of(const Vit& vit, std::int64_t seq) { return vit.layers * vit.width * seq; }
std::int64_t attention_widths_of(const Profiled&, std::int64_t) { return 0; }
std::int64_t head_elements_of(const Decoder& d) { return d.vocab * d.width; }
std::int64_t head_elements_of(const T5& t5) { return t5.vocab * t5.width; }
std::int64_t head_elements_of(const Vit& vit) { return vit.labels * vit.width; }
std::int64_t head_elements_of(const Profiled& profile) { return profile.head.parameters; }

}  // namespace

std::int64_t attention_widths(const Model& model, std::int64_t seq) {
  return std::visit([seq](const auto& of_kind) { return attention_widths_of(of_kind, seq); }, model);
}

std::int64_t head_elements(const Model& model) {
  return std::visit([](const auto& of_kind) { return head_elements_of(of_kind); }, model);
}

bool is_tied(const Model& model) {
  if (const auto* t5 = std::get_if<T5>(&model)) return t5->tied;
  const auto* decoder = std::get_if<Decoder>(&model);
  return !decoder || decoder->tied;
}

bool is_adapted(const Model& model) {
  const auto* decoder = std::get_if<Decoder>(&model);
  return decoder && !decoder->trains_base();
}

std::int64_t weights_before_trained(const Model& model) {
  return is_adapted(model) ? weights_before_trained(std::get<Decoder>(model)) : 0;
}

std::vector<Storage> inputs(const Eager& eager, const Model& model, const Batch& batch) {
  if (const auto* vit = std::get_if<Vit>(&model))
    return {eager.empty(batch.rows * vit->pixels(), DType::f32), eager.empty(batch.rows, DType::i64)};
  if (const auto* profile = std::get_if<Profiled>(&model))
    return {eager.empty(batch.rows, DType::f32), eager.empty(batch.rows, DType::i64),
            eager.empty_bytes(profile->tables_bytes)};
  return {eager.empty(batch.tokens(), DType::i64)};
}

Tensor loss(Eager& eager, Wrapper& wrapper, const Model& model, const Batch& batch, const std::vector<Storage>& inputs,
            bool recompute) {
  if (const auto* vit = std::get_if<Vit>(&model))
    return classification_loss(eager, wrapper, *vit, batch.rows, inputs[0], inputs[1], recompute);
  if (const auto* profile = std::get_if<Profiled>(&model))
    return profiled_loss(eager, wrapper, *profile, batch.rows, inputs[0], inputs[1], recompute);
  if (const auto* t5 = std::get_if<T5>(&model)) return seq2seq_loss(eager, wrapper, *t5, batch, inputs[0], recompute);
  return causal_lm_loss(eager, wrapper, std::get<Decoder>(model), batch, inputs[0], recompute);
}

}  // namespace foreshard::sim::torch
