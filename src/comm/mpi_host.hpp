#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "comm/abort_flag.hpp"
#include "comm/mpi_call.hpp"

namespace foreshard::comm {

/// Host data among all ranks of an MPI communicator: collective, any size, waiting as wait_for does.
class MpiHost {
 public:
  /// Messages are no longer than `longest_message_bytes`.
  MpiHost(MpiComm comm, std::int64_t longest_message_bytes);

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm get() const { return comm_.get(); }

  void barrier(const AbortFlag& abort) const;
  void broadcast(std::span<std::byte> data, int root, const AbortFlag& abort) const;
  /// On rank 0 the bytes of every rank; elsewhere empty. Sizes may differ.
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> data, const AbortFlag& abort) const;

  template <class T>
  std::vector<T> all_gather(const T& value, const AbortFlag& abort, std::string_view call) const {
    std::vector<T> values(static_cast<std::size_t>(size_));
    all_gather_bytes(&value, values.data(), sizeof(T), abort, call);
    return values;
  }

 private:
  void all_gather_bytes(const void* value, void* values, std::size_t size_bytes, const AbortFlag& abort,
                        std::string_view call) const;

  MpiComm comm_;
  std::int64_t longest_message_bytes_;
  int rank_, size_;
};

}  // namespace foreshard::comm
