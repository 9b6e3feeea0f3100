#pragma once
#include "model/gpt.hpp"
#include "model/hf_config_file.hpp"
#include "model/llama.hpp"

/// One reader a family: takes what decides shapes, notes what is assumed, refuses what is computed otherwise.
namespace foreshard::model {

GptConfig read_gpt2(HfConfigFile& file);
/// Llama, Mistral and Qwen2, which differ in defaults and in which projections have biases.
LlamaConfig read_llama(HfConfigFile& file);
LlamaConfig read_mistral(HfConfigFile& file);
LlamaConfig read_qwen2(HfConfigFile& file);

}  // namespace foreshard::model
