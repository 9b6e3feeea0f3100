#include "base/version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

// The FORESHARD_ macros are defined for this file alone, by cmake/Version.cmake.
namespace foreshard {

namespace {

/// Names and versions from "MPI=3.1,HDF5=1.10.8".
nlohmann::ordered_json libraries() {
  nlohmann::ordered_json found = nlohmann::ordered_json::object();
  std::string_view rest = FORESHARD_LIBRARIES;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    const std::size_t equals = item.find('=');
    found[std::string(item.substr(0, equals))] = std::string(item.substr(equals + 1));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
  }
  return found;
}

std::string_view or_unknown(std::string_view text) { return text.empty() ? "unknown" : text; }

}  // namespace

std::string_view version() { return FORESHARD_VERSION; }
std::string_view version_commit() { return FORESHARD_COMMIT; }

std::string version_text() {
  std::string text = fmt::format("foreshard {}\ncommit: {}\ncompiler: {}\nbuild type: {}\n", version(),
                                 or_unknown(version_commit()), FORESHARD_COMPILER, or_unknown(FORESHARD_BUILD_TYPE));
  const nlohmann::ordered_json found = libraries();
  for (const auto& [name, number] : found.items()) text += fmt::format("{}: {}\n", name, number.get<std::string>());
  return text;
}

std::string version_json() {
  nlohmann::ordered_json facts;
  facts["schema"] = "foreshard-version";
  facts["schema_version"] = 1;
  facts["version"] = version();
  facts["commit"] = version_commit();
  facts["compiler"] = FORESHARD_COMPILER;
  facts["build_type"] = FORESHARD_BUILD_TYPE;
  facts["libraries"] = libraries();
  return facts.dump(2);
}

}  // namespace foreshard
