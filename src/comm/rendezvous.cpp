#include "comm/rendezvous.hpp"

#include <utility>

namespace foreshard::comm {

Rendezvous::Everything Rendezvous::exchange(int rank, std::span<const std::byte> data, std::string_view call) {
  std::unique_lock lock(mutex_);
  abort_.check(call);
  brought_[rank].assign(data.begin(), data.end());
  const std::uint64_t meeting = meetings_;
  if (++arrived_ < size_) {
    changed_.wait(lock, [&] {
      if (meetings_ == meeting) abort_.check(call);
      return meetings_ != meeting;
    });
    return last_;
  }
  last_ = std::make_shared<const std::vector<std::vector<std::byte>>>(
      std::exchange(brought_, std::vector<std::vector<std::byte>>(size_)));
  arrived_ = 0;
  ++meetings_;
  changed_.notify_all();
  return last_;
}

int Rendezvous::abort(int rank, int exit_code) noexcept {
  const std::lock_guard lock(mutex_);
  const int first = abort_.raise(rank, exit_code);
  changed_.notify_all();
  return first;
}

}  // namespace foreshard::comm
