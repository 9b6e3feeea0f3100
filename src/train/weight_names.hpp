#pragma once
#include <string>
#include <vector>

#include "model/model.hpp"

/// How Hugging Face's files of weights call and lay out the parameters of a model.
namespace foreshard::train {

/// E.g. "transformer.h.3.attn.c_attn.weight"; ViT's are called in files as they were before transformers 5.
std::string stored_name(const model::Config& model, const model::Parameter& parameter);

/// Whether a matrix is stored [in features, out features]: those of GPT-2's linear layers, which were written as
/// convolutions.
bool is_stored_transposed(const model::Config& model, const model::Parameter& parameter);

/// The shape in files: of what is stored transposed, and of the matrix for ViT's patches, which is a convolution there:
/// [width, channels, side, side], with three channels or, where no square patch has so many values, with one.
std::vector<std::int64_t> stored_shape(const model::Config& model, const model::Parameter& parameter);

}  // namespace foreshard::train
