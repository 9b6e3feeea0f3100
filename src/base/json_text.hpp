#pragma once
#include <string>

namespace foreshard {

/// The text of a nlohmann::json or ordered_json, `indent` blanks a level; -1: all on one line. Names of files may be
/// any bytes, which JSON may not: what is not UTF-8 becomes U+FFFD.
template <class Json>
std::string json_text(const Json& json, int indent = 2) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace foreshard
