#include "engine/cuda_module.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "engine/module_build.hpp"

// FORESHARD_COMMIT is defined by cmake/Version.cmake.
namespace foreshard::engine {
namespace {

namespace fs = std::filesystem;
constexpr const char *module_name = "libforeshard_cuda.so", *folder_variable = "FORESHARD_MODULE_PATH";

std::string named_folder() {
  const char* folder = std::getenv(folder_variable);
  return folder ? folder : "";
}

fs::path module_path() {
  const std::string folder = named_folder();
  return (folder.empty() ? fs::read_symlink("/proc/self/exe").parent_path() : fs::path(folder)) / module_name;
}

[[noreturn]] void refuse(const fs::path& path, const std::string& reason) {
  throw InputError(
      ExitCode::usage,
      fmt::format(
          "CUDA devices need the module {}{}: {}; build on a machine with nvcc and NCCL (the configure step says "
          "whether it found them), or stay on processor cores (engine.device=cpu; of foreshard-calibrate "
          "--device=cpu)",
          path.string(), named_folder().empty() ? "" : fmt::format(", whose folder {} names", folder_variable),
          reason));
}

/// The loader maps a file that was cut short, and then touches what is not there.
void expect_whole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) refuse(path, "it cannot be read");
  const std::uint64_t expected = header.e_shoff + std::uint64_t{header.e_shnum} * header.e_shentsize;
  const bool is_elf = std::string_view(reinterpret_cast<const char*>(header.e_ident), SELFMAG) == ELFMAG;
  if (is_elf && fs::file_size(path) < expected)
    refuse(path, fmt::format("it was cut short, {} of at least {} bytes", fs::file_size(path), expected));
}

void expect_same_build(const fs::path& path, void* module) {
  const auto layout = reinterpret_cast<std::uint64_t (*)()>(dlsym(module, "foreshard_module_layout"));
  const auto commit = reinterpret_cast<const char* (*)()>(dlsym(module, "foreshard_module_commit"));
  if (!layout || !commit || layout() != module_layout || std::string_view(commit()) != FORESHARD_COMMIT)
    refuse(path, fmt::format("it was built of other sources than this program, of commit {} and not {}",
                             commit ? commit() : "unknown", FORESHARD_COMMIT));
}

void* open_module() {
  const fs::path path = module_path();
  if (!fs::exists(path)) refuse(path, "there is no such file");
  expect_whole(path);
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) refuse(path, dlerror());
  expect_same_build(path, module);
  return module;
}

}  // namespace

void* cuda_symbol(const char* name) {
  void* const symbol = dlsym(open_module(), name);
  if (!symbol) refuse(module_path(), dlerror());
  return symbol;
}

}  // namespace foreshard::engine
