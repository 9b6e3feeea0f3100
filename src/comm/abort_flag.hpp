#pragma once
#include <atomic>
#include <cstdint>
#include <string_view>

namespace foreshard::comm {

/// The word by which a rank tells the others that it ends the run. Lies in memory that all of them map; zeroed memory
/// is a lowered flag. The first to raise it is the one reported.
class AbortFlag {
 public:
  /// Keeps what is already there. Returns the exit code of the first raise.
  int raise(int rank, int exit_code) noexcept;

  /// Throws LibraryError, naming `call`, the rank and its exit code, when the flag is up.
  void check(std::string_view call) const;

 private:
  std::atomic<std::uint64_t> word_{0};
};

}  // namespace foreshard::comm
