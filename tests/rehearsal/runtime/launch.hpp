#pragma once
#include <functional>
#include <span>

#include "cuda_runtime_api.h"

namespace rehearsal {

/// One argument of a kernel: pointers into device memory in it are replaced by where that memory really is.
struct Argument {
  void* at;
  std::size_t bytes;
  bool is_pointer;
};

/// Checks what the hardware would, then queues the kernel. Arguments must live as long as `call`.
cudaError_t launch(const cudaLaunchConfig_t&, const void* kernel, std::span<const Argument>,
                   std::function<void()> call);

}  // namespace rehearsal
