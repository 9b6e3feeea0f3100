#include "engine/cuda_module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"

namespace foreshard::engine {
namespace {

namespace fs = std::filesystem;
constexpr const char* module_name = "libforeshard_cuda.so";

fs::path module_path() {
  if (const char* folder = std::getenv("FORESHARD_MODULE_PATH")) return fs::path(folder) / module_name;
  return fs::read_symlink("/proc/self/exe").parent_path() / module_name;
}

[[noreturn]] void refuse(const fs::path& path, const std::string& reason) {
  throw InputError(
      ExitCode::usage,
      fmt::format("CUDA devices need the module {}: {}; build on a machine with nvcc and NCCL (the configure step says "
                  "whether it found them), or stay on processor cores (engine.device=cpu; of foreshard-calibrate "
                  "--device=cpu)",
                  path.string(), reason));
}

}  // namespace

void* cuda_symbol(const char* name) {
  const fs::path path = module_path();
  if (!fs::exists(path)) refuse(path, "there is no such file");
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) refuse(path, dlerror());
  void* const symbol = dlsym(module, name);
  if (!symbol) refuse(path, dlerror());
  return symbol;
}

}  // namespace foreshard::engine
