#include "model/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/hf_config_families.hpp"

namespace foreshard::model {
namespace {

struct Family {
  std::string_view model_type;
  Config (*read)(HfConfigFile&);
};

template <auto read>
Config any(HfConfigFile& file) {
  return read(file);
}

constexpr std::array families{
    Family{"gpt2", any<read_gpt2>},   Family{"llama", any<read_llama>},     Family{"mistral", any<read_mistral>},
    Family{"qwen2", any<read_qwen2>}, Family{"mpt", any<read_mpt>},         Family{"t5", any<read_t5>},
    Family{"vit", any<read_vit>},     Family{"deepvit", any<read_deepvit>}, Family{"profile", any<read_profile>}};

const Family* family_of(HfConfigFile& file) {
  static constexpr std::array<std::string_view, 1> key{"model_type"};
  const auto type = file.text(key);
  if (type)
    for (const Family& family : families)
      if (family.model_type == *type) return &family;
  const auto known = hf_model_types();
  if (type || !file.has("model_type") || file.null("model_type"))
    file.refuse("model_type",
                fmt::format("one of {}.{}", fmt::join(known, ", "), type ? did_you_mean(*type, known) : std::string()));
  return nullptr;
}

void refuse_nested(HfConfigFile& file) {
  for (const std::string_view key : hf::nested)
    if (file.has(key) && !file.null(key))
      file.problem(
          fmt::format("{} is a configuration of its own: several models are in this file. Write the inner object to a "
                      "file, with the model_type of its family, and give that",
                      key));
}

bool is_nothing(const std::string& value) { return value == "null" || value == "0" || value == "false"; }

void refuse_experts(HfConfigFile& file) {
  for (const std::string_view key : hf::experts) {
    file.mark(key);
    if (file.has(key) && !is_nothing(file.shown(key)))
      file.problem(fmt::format("{} is {}: models with experts are not supported, only dense ones: {}", key,
                               file.shown(key), fmt::join(hf_model_types(), ", ")));
  }
}

void note_types(HfConfigFile& file) {
  for (const std::string_view key : hf::dtype) {
    if (file.has(key) && !file.null(key))
      file.note(fmt::format("{} {} is not taken over: precision.* says which types are computed and kept", key,
                            file.shown(key)));
    file.mark(key);
  }
  if (file.has("quantization_config") && !file.null("quantization_config"))
    file.note("quantization_config is not taken over: weights are planned whole");
  file.mark("quantization_config");
}

void note_unused(HfConfigFile& file) {
  if (const auto unused = file.unused(); !unused.empty())
    file.note(fmt::format("without effect here: {}", fmt::join(unused, ", ")));
}

}  // namespace

std::vector<std::string_view> hf_model_types() {
  std::vector<std::string_view> types;
  for (const Family& family : families) types.push_back(family.model_type);
  return types;
}

HfModel read_hf_config(const std::string& path) { return hf_model_of(HfConfigFile::open(path)); }

HfModel hf_model_of(HfConfigFile file) {
  HfModel model;
  refuse_nested(file);
  refuse_experts(file);
  if (const Family* family = family_of(file)) {
    model.config = family->read(file);
    model.source.family = family->model_type;
  }
  if (const auto& problems = file.problems(); !problems.empty())
    throw InputError(ExitCode::bad_input,
                     fmt::format("model.config: {}: {}", file.origin(),
                                 numbered(fmt::format("{} problems:", problems.size()), problems)));
  note_types(file);
  note_unused(file);
  model.source.from = file.origin();
  model.source.notes = file.notes();
  return model;
}

}  // namespace foreshard::model
