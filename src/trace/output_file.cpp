#include "trace/output_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.hpp"

namespace foreshard::trace {
namespace {

[[noreturn]] void fail(const char* call, const std::string& path) {
  throw LibraryError(fmt::format("{} failed on {}: {}", call, path, std::strerror(errno)));
}

}  // namespace

OutputFile::OutputFile(const std::string& path, bool force) : path_(path) {
  if (!force && std::filesystem::exists(path))
    throw InputError(ExitCode::usage,
                     fmt::format("{} exists and is not overwritten: give another name, or --force", path));
  file_.reset(std::fopen(path.c_str(), "w"));
  if (!file_) fail("fopen", path_);
}

void OutputFile::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) fail("fwrite", path_);
}

void OutputFile::close() {
  if (std::fclose(file_.release()) != 0) fail("fclose", path_);
}

}  // namespace foreshard::trace
