#include "comm/nccl/call.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace foreshard::comm::nccl {

void check(ncclResult_t result, std::string_view call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* last = ncclGetLastError(nullptr);
  throw LibraryError(
      fmt::format("{}: {}{}{}", call, ncclGetErrorString(result), last && *last ? ": " : "", last ? last : ""));
}

}  // namespace foreshard::comm::nccl
