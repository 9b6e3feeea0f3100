#pragma once
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "comm/abort_flag.hpp"

namespace foreshard::comm {

/// Where the threads of one process meet and swap bytes.
class Rendezvous {
 public:
  using Everything = std::shared_ptr<const std::vector<std::vector<std::byte>>>;

  explicit Rendezvous(int size) : size_(size), brought_(size) {}

  /// Blocks until all ranks came with the same meeting; returns what each brought, by rank. Throws LibraryError when
  /// the run was ended meanwhile.
  Everything exchange(int rank, std::span<const std::byte> data, std::string_view call);

  /// Ends the run: whoever waits or comes later throws. Returns the exit code of the first to do so.
  int abort(int rank, int exit_code) noexcept;

  const AbortFlag& abort_flag() const { return abort_; }

 private:
  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<std::byte>> brought_;
  Everything last_;
  int arrived_ = 0;
  std::uint64_t meetings_ = 0;
  AbortFlag abort_;
};

}  // namespace foreshard::comm
