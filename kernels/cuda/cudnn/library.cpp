#include "kernels/cuda/cudnn/library.hpp"

#include <dlfcn.h>

#include <optional>
#include <string>

#include "base/error.hpp"

namespace foreshard::kernels::cuda::cudnn {
namespace {

constexpr std::size_t message_bytes = 1024, first_version = 91100;
constexpr const char* where_cmake_found_it = FORESHARD_CUDNN_LIBRARY;

void* opened() {
  void* const found = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  return found ? found : dlopen(where_cmake_found_it, RTLD_NOW | RTLD_LOCAL);
}

/// Whether the library has this function.
template <class Function>
bool find(void* from, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(from, name));
  return function != nullptr;
}

std::optional<Library> loaded() {
  void* const from = opened();
  Library l{};
  const bool complete = from && find(from, "cudnnGetErrorString", l.error_string) &&
                        find(from, "cudnnGetLastErrorString", l.last_error_string) &&
                        find(from, "cudnnGetVersion", l.version) && find(from, "cudnnCreate", l.create) &&
                        find(from, "cudnnDestroy", l.destroy) && find(from, "cudnnSetStream", l.set_stream) &&
                        find(from, "cudnnBackendCreateDescriptor", l.create_descriptor) &&
                        find(from, "cudnnBackendDestroyDescriptor", l.destroy_descriptor) &&
                        find(from, "cudnnBackendSetAttribute", l.set_attribute) &&
                        find(from, "cudnnBackendGetAttribute", l.get_attribute) &&
                        find(from, "cudnnBackendFinalize", l.finalize) && find(from, "cudnnBackendExecute", l.execute);
  if (!complete || l.version() < first_version) return std::nullopt;
  return l;
}

}  // namespace

const Library* library() {
  static const std::optional<Library> found = loaded();
  return found ? &*found : nullptr;
}

void check(cudnnStatus_t status, std::string_view call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::string reason(message_bytes, '\0');
  library()->last_error_string(reason.data(), reason.size());
  throw LibraryError(std::string(call) + ": " + library()->error_string(status) + " (" + reason.c_str() + ")");
}

}  // namespace foreshard::kernels::cuda::cudnn
