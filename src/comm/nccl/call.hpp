#pragma once
#include <nccl.h>

#include <string_view>

namespace foreshard::comm::nccl {

/// Throws LibraryError with the name of the call and what NCCL says, unless it succeeded or is still in progress.
void check(ncclResult_t result, std::string_view call);

}  // namespace foreshard::comm::nccl
