#pragma once
#include <cudnn_graph.h>

#include <string_view>

namespace foreshard::kernels::cuda::cudnn {

/// The functions of libcudnn.so.9 that are used, found when first asked for: nothing links to it.
struct Library {
  decltype(&cudnnGetErrorString) error_string;
  decltype(&cudnnGetLastErrorString) last_error_string;
  decltype(&cudnnGetVersion) version;
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&cudnnBackendSetAttribute) set_attribute;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendExecute) execute;
};

/// Null where there is none of release 9.11 or later: it is looked for where the loader looks, then where CMake found
/// it.
const Library* library();

/// Throws LibraryError if a call of cuDNN failed; `call` is its name. Needs the library.
void check(cudnnStatus_t, std::string_view call);

}  // namespace foreshard::kernels::cuda::cudnn
