#include "base/input_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.hpp"
#include "base/units.hpp"

namespace foreshard {
namespace {

constexpr std::size_t piece = std::size_t{1} << 20;

[[noreturn]] void refuse(const InputFile& file, std::string_view what) {
  throw InputError(ExitCode::bad_input, fmt::format("{}{}{}: {}; {}", file.kind, file.kind.empty() ? "" : " ",
                                                    file.path.string(), what, file.remedy));
}

std::string cannot_be_read(std::string_view why) { return fmt::format("cannot be read ({})", why); }

}  // namespace

std::string read_whole(const InputFile& file) {
  std::error_code none;
  if (std::filesystem::is_directory(file.path, none)) refuse(file, cannot_be_read("it is a folder"));
  std::ifstream in(file.path, std::ios::binary);
  if (!in) refuse(file, cannot_be_read(std::strerror(errno)));
  std::string content;
  while (in && content.size() <= file.most_bytes) {
    const std::size_t before = content.size();
    content.resize(before + std::min(piece, file.most_bytes + 1 - before));
    in.read(content.data() + before, static_cast<std::streamsize>(content.size() - before));
    content.resize(before + static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) refuse(file, cannot_be_read(std::strerror(errno)));
  if (content.size() > file.most_bytes)
    refuse(file, fmt::format("larger than {}", bytes_text(static_cast<std::int64_t>(file.most_bytes))));
  return content;
}

std::string why_no_file(const std::filesystem::path& path) {
  using enum std::filesystem::file_type;
  std::error_code error;
  switch (std::filesystem::status(path, error).type()) {
    case regular:
      return "";
    case not_found:
      return "there is no such file";
    case directory:
      return "it is a folder, not a file";
    case none:
      return error.message();
    default:
      return "it is a device, pipe or socket, not a file";
  }
}

}  // namespace foreshard
