#pragma once
#include "model/gpt.hpp"
#include "model/hf_config_file.hpp"
#include "model/llama.hpp"
#include "model/mpt.hpp"
#include "model/profile.hpp"
#include "model/t5.hpp"
#include "model/vit.hpp"

/// One reader a family: takes what decides shapes, notes what is assumed, refuses what is computed otherwise.
namespace foreshard::model {

GptConfig read_gpt2(HfConfigFile& file);
/// Llama, Mistral and Qwen2, which differ in defaults and in which projections have biases.
LlamaConfig read_llama(HfConfigFile& file);
LlamaConfig read_mistral(HfConfigFile& file);
LlamaConfig read_qwen2(HfConfigFile& file);
/// By llm-foundry, which the keys come from: transformers' own MPT has no biases and no table whatever they say.
MptConfig read_mpt(HfConfigFile& file);
T5Config read_t5(HfConfigFile& file);
VitConfig read_vit(HfConfigFile& file);
/// transformers has no such model: ViT's keys, with model_type "deepvit".
VitConfig read_deepvit(HfConfigFile& file);
/// A profile of our own form: {"model_type": "profile", "name": …, "part_of_peak": 0 … 1, "units": [{"name", "count",
/// "parameters", "forward_flops", "backward_flops", "activation_bytes", "output_values", "operators", "waits"}, …],
/// "root": {…}, "tables_bytes": …}, as `ProfiledUnit` and `ProfileConfig` say; `count` equal units may be one entry.
ProfileConfig read_profile(HfConfigFile& file);

}  // namespace foreshard::model
