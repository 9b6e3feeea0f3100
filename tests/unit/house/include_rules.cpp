#include "unit/house/include_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace foreshard::house {
namespace {

/// Over one line, or with the beginning of any line for `^`.
const std::regex include(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])", std::regex::ECMAScript | std::regex::multiline);

using Layers = std::set<std::string, std::less<>>;

const std::map<std::string, Layers, std::less<>>& visible_from() {
  static const std::map<std::string, Layers, std::less<>> table = {
      {"base", {}},
      {"model", {"base"}},
      {"plan", {"base", "model"}},
      {"trace", {"base", "model", "plan"}},
      {"exec", {"base", "model", "plan", "trace"}},
      {"kernels", {"base"}},
      {"comm", {"base"}},
      {"engine", {"base", "model", "plan", "trace", "exec", "comm", "kernels"}},
      {"sim", {"base", "model", "plan", "trace", "exec"}},
      {"train", {"base", "model", "plan", "trace", "exec", "comm", "kernels", "engine", "sim"}},
      {"apps", {"base", "model", "plan", "trace", "exec", "comm", "kernels", "engine", "sim", "train"}},
  };
  return table;
}

std::string first_folder(std::string_view target) { return std::string(target.substr(0, target.find('/'))); }

bool matches(std::string_view text, const char* pattern) {
  return std::regex_search(text.begin(), text.end(), std::regex(pattern, std::regex::icase));
}

struct Library {
  const char* name;
  const char* headers;     ///< regular expression over include targets
  const char* allowed_in;  ///< regular expression over paths
};

constexpr Library libraries[] = {
    {"MPI", "^mpi(-ext)?\\.h$", "^(src/comm/mpi_|apps/)"},
    {"HDF5", "^(hdf5|hdf5_hl|H5.*)\\.h$", "^src/(trace/|train/checkpoint)"},
    {"CUDA", "^(cuda|cublas|cudnn|nccl|nvrtc|nvml|nvtx3/|cub/|thrust/)",
     "(^(src|kernels)/.*(cuda|nccl)|^tests/(rehearsal|gpu)/)"},
    {"oneDNN", "^(oneapi/)?dnnl", "^kernels/cpu/"},
};

std::string problem_with_library(const std::string& path, std::string_view target) {
  for (const Library& library : libraries)
    if (matches(target, library.headers) && !matches(path, library.allowed_in))
      return fmt::format("may not see {} (<{}>)", library.name, target);
  return {};
}

std::string problem_with_layer(const std::filesystem::path& path, std::string_view target) {
  const std::string from = layer_of(path), to = first_folder(target);
  if (!visible_from().contains(to))
    return fmt::format("includes \"{}\": name it by its path from src/ or the project root", target);
  if (from != to && !visible_from().at(from).contains(to))
    return fmt::format("{} may not include {} (\"{}\")", from, to, target);
  return {};
}

}  // namespace

std::string layer_of(const std::filesystem::path& path) {
  const std::string text = path.generic_string();
  const std::string layer =
      first_folder(text.starts_with("src/") ? std::string_view(text).substr(4) : std::string_view(text));
  return visible_from().contains(layer) ? layer : std::string();
}

std::string problem_with_include(const std::filesystem::path& path, std::string_view target, bool quoted) {
  if (layer_of(path).empty()) return {};
  const std::string problem = problem_with_library(path.generic_string(), target);
  return problem.empty() && quoted ? problem_with_layer(path, target) : problem;
}

std::vector<std::string> include_problems(const std::filesystem::path& path, std::string_view text) {
  std::vector<std::string> problems;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::smatch match;
    if (!std::regex_search(line, match, include)) continue;
    const std::string problem = problem_with_include(path, match[2].str(), match[1] == "\"");
    if (!problem.empty()) problems.push_back(fmt::format("{}:{}: {}", path.generic_string(), number, problem));
  }
  return problems;
}

std::string first_include(std::string_view text) {
  std::match_results<std::string_view::const_iterator> match;
  return std::regex_search(text.begin(), text.end(), match, include) ? match[2].str() : std::string();
}

std::string included_as(const std::filesystem::path& path) {
  return (*path.begin() == "src" ? path.lexically_relative("src") : path).generic_string();
}

}  // namespace foreshard::house
