#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

namespace foreshard::trace {

/// A text file being written. Every failure is a LibraryError that names it.
class OutputFile {
 public:
  /// Throws InputError (usage) if `path` exists, unless `force`.
  OutputFile(const std::string& path, bool force);

  void write(std::string_view text);
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    line_.clear();
    fmt::format_to(std::back_inserter(line_), format, std::forward<Args>(args)...);
    write({line_.data(), line_.size()});
  }
  /// Writes what is still in memory.
  void close();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  fmt::memory_buffer line_;
};

}  // namespace foreshard::trace
