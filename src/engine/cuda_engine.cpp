#include "engine/cuda_engine.hpp"

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
      fmt::format("training on CUDA devices needs the module {}: {}; build on a machine with nvcc and NCCL "
                  "(the configure step says whether it found them), or train with engine.device=cpu",
                  path.string(), reason));
}

MakeCudaEngine* loaded() {
  const fs::path path = module_path();
  if (!fs::exists(path)) refuse(path, "there is no such file");
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) refuse(path, dlerror());
  void* const symbol = dlsym(module, "foreshard_make_cuda_engine");
  if (!symbol) refuse(path, dlerror());
  return reinterpret_cast<MakeCudaEngine*>(symbol);
}

}  // namespace

MakeEngine on_cuda(CudaOptions options) {
  return [options](const EngineSpec& spec) { return std::unique_ptr<Engine>(loaded()(spec, options)); };
}

}  // namespace foreshard::engine
