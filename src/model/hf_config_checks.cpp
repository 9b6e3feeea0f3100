#include "model/hf_config_checks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace foreshard::model {

void expect_activation(HfConfigFile& file, std::initializer_list<std::string_view> computed) {
  const auto given = file.text(hf::activation);
  if (!given || std::ranges::find(computed, *given) != computed.end()) return;
  for (const std::string_view key : hf::activation)
    if (file.has(key) && !file.null(key))
      return file.refuse(key, fmt::format("{}: no other is computed", fmt::join(computed, " or ")));
}

void refuse_flag(HfConfigFile& file, std::string_view key, std::string_view why) {
  const hf::Names<1> name{key};
  if (file.boolean(name).value_or(false)) file.refuse(key, fmt::format("false: {}", why));
}

void note_dropout(HfConfigFile& file, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    file.mark(key);
    if (const std::string value = file.shown(key);
        value != "missing" && value != "null" && value != "0.0" && value != "0")
      file.note(fmt::format("{} {} is not taken over: model.dropout says what is dropped", key, value));
  }
}

}  // namespace foreshard::model
