#pragma once
#include <variant>

#include "sim/runtimes/profiled.hpp"
#include "sim/runtimes/t5.hpp"
#include "sim/runtimes/vit.hpp"

namespace foreshard::sim::torch {

/// A model that the eager runtime can run: of Hugging Face transformers, or by its profile.
using Model = std::variant<Decoder, T5, Vit, Profiled>;

UnitShapes unit_shapes(const Model& model);
/// f32 elements of the model's buffers.
std::int64_t buffer_elements(const Model& model);

/// Σ over layers of the width of all heads · the length that a token may attend to in sequences of `seq`, cross
/// attention counted as a layer.
std::int64_t attention_widths(const Model& model, std::int64_t seq);
/// Elements of the last product's weight, and whether the model has no other table of tokens.
std::int64_t head_elements(const Model& model);
bool is_tied(const Model& model);
/// Whether LoRA alone is trained, and elements of weights whose products lie in front of all that is.
bool is_adapted(const Model& model);
std::int64_t weights_before_trained(const Model& model);

/// What the model is fed: tokens, which are labels too, or pixels and labels.
std::vector<Storage> inputs(const Eager& eager, const Model& model, const Batch& batch);

/// Its loss in training, with each block checkpointed if `recompute`. A batch of images has one "token" each.
Tensor loss(Eager& eager, Wrapper& wrapper, const Model& model, const Batch& batch, const std::vector<Storage>& inputs,
            bool recompute);

}  // namespace foreshard::sim::torch
