#pragma once
#include <string>

#include "model/model.hpp"

/// How Hugging Face's files of weights call and lay out the parameters of a model.
namespace foreshard::train {

/// E.g. "transformer.h.3.attn.c_attn.weight".
std::string stored_name(const model::Config& model, const model::Parameter& parameter);

/// Whether a matrix is stored [in features, out features]: those of GPT-2's linear layers, which were written as
/// convolutions.
bool is_stored_transposed(const model::Config& model, const model::Parameter& parameter);

}  // namespace foreshard::train
