#pragma once
#include <mpi.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>

#include "comm/abort_flag.hpp"

namespace foreshard::comm {

/// The lock around every MPI call where the library granted less than MPI_THREAD_MULTIPLE; an empty one where it did.
std::unique_lock<std::mutex> mpi_turn();

/// Throws LibraryError with the name of the call and what MPI says, unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

/// mpi_call("MPI_Isend", MPI_Isend, arguments…): in turn, and checked. Only for calls that do not wait for other ranks,
/// or before there are threads.
template <class Function, class... Arguments>
void mpi_call(const char* name, Function function, Arguments... arguments) {
  const auto turn = mpi_turn();
  check_mpi(function(arguments...), name);
}

/// Returns when all requests are done: some tests at once, then a test and a sleep of 50 to 200 µs in turn.
/// Non-blocking MPI progresses only inside its calls, and a blocking call would spin a core away from the compute
/// thread. Throws what `abort` throws for `call`.
void wait_for(std::span<MPI_Request> requests, const AbortFlag& abort, std::string_view call);

/// A communicator of our own, whose errors are returned, not fatal. Frees it, unless MPI has ended.
class MpiComm {
 public:
  MpiComm() = default;
  explicit MpiComm(MPI_Comm comm);  ///< takes it over
  MpiComm(MpiComm&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  MpiComm& operator=(MpiComm&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  ~MpiComm();
  MPI_Comm get() const { return comm_; }
  int rank() const;
  int size() const;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace foreshard::comm
