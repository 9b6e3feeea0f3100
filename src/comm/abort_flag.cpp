#include "comm/abort_flag.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace foreshard::comm {

namespace {

constexpr std::uint64_t raised = std::uint64_t{1} << 63;

std::uint64_t pack(int rank, int exit_code) {
  return raised | std::uint64_t{static_cast<std::uint32_t>(rank) & 0x7fffffffU} << 32 |
         static_cast<std::uint32_t>(exit_code);
}
int rank_of(std::uint64_t word) { return static_cast<int>((word & ~raised) >> 32); }
int exit_code_of(std::uint64_t word) { return static_cast<int>(static_cast<std::uint32_t>(word)); }

}  // namespace

int AbortFlag::raise(int rank, int exit_code) noexcept {
  std::uint64_t seen = 0;
  return word_.compare_exchange_strong(seen, pack(rank, exit_code)) ? exit_code : exit_code_of(seen);
}

void AbortFlag::check(std::string_view call) const {
  const std::uint64_t word = word_.load(std::memory_order_acquire);
  if (word == 0) return;
  throw LibraryError(fmt::format("{}: ended because rank {} ended the run with exit code {}", call, rank_of(word),
                                 exit_code_of(word)));
}

}  // namespace foreshard::comm
