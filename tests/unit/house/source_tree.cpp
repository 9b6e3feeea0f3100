#include "unit/house/source_tree.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

namespace foreshard::house {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view roots[] = {"src", "sim", "kernels", "apps", "tests", "cmake", "jobscripts", "analysis"};
constexpr std::string_view empty_words[] = {"util", "utils", "helper", "helpers", "common", "manager", "misc"};

bool is_source(const fs::path& path) {
  static const std::set<std::string> extensions = {".hpp", ".cpp", ".cuh", ".cu", ".py", ".sh", ".cmake", ".txt"};
  return extensions.contains(path.extension().string());
}

bool is_left_out(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name.starts_with(".") || name == "build" || name == "__pycache__";
}

void collect(const fs::path& root, const fs::path& folder, std::vector<fs::path>& files) {
  for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry->is_directory() && is_left_out(entry->path())) entry.disable_recursion_pending();
    if (entry->is_regular_file() && is_source(entry->path())) files.push_back(entry->path().lexically_relative(root));
  }
}

}  // namespace

std::vector<fs::path> source_files(const fs::path& root) {
  std::vector<fs::path> files;
  for (const std::string_view folder : roots)
    if (fs::is_directory(root / folder)) collect(root, root / folder, files);
  std::sort(files.begin(), files.end());
  return files;
}

bool is_cpp(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".hpp" || extension == ".cpp" || extension == ".cu" || extension == ".cuh";
}

std::string read_text(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::string_view empty_word_in(std::string_view name) {
  while (!name.empty()) {
    const std::string_view word = name.substr(0, name.find_first_of("_-."));
    for (const std::string_view empty : empty_words)
      if (word == empty) return empty;
    name.remove_prefix(std::min(name.size(), word.size() + 1));
  }
  return {};
}

}  // namespace foreshard::house
