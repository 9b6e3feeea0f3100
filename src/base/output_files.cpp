#include "base/output_files.hpp"

#include <fmt/format.h>

#include <system_error>

#include "base/error.hpp"

namespace foreshard {

namespace fs = std::filesystem;

void make_folder(const fs::path& folder) {
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error)) return;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw InputError(ExitCode::usage,
                     fmt::format("{}: no such folder can be made ({}); give another name for what is to "
                                 "be written",
                                 folder.string(), error ? error.message() : "something else is there"));
}

void expect_no_input_overwritten(std::span<const fs::path> outputs, std::span<const fs::path> inputs) {
  std::error_code absent;
  for (const fs::path& output : outputs)
    for (const fs::path& input : inputs)
      if (fs::equivalent(output, input, absent))
        throw InputError(ExitCode::usage,
                         fmt::format("{}: is read and would be overwritten; give another name for what "
                                     "is to be written",
                                     output.string()));
}

}  // namespace foreshard
