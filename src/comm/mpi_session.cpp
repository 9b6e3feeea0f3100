#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>

#include "comm/mpi_call.hpp"
#include "comm/mpi_communicator.hpp"

namespace foreshard::comm {

namespace {

constexpr std::chrono::seconds patience_with_abort{5};

// Over TCP, Open MPI's "put" answers the announcement of a message behind all data that is queued the other way, which
// then waits for it (mpi_message_group.hpp); "send" queues little at a time. Measured at 4 Gbit/s, 8 MiB each way in
// pieces of 256 KiB: 18.5 ms instead of 22.7. What the user or the launcher set stays.
void prefer_sends_over_tcp() { setenv("OMPI_MCA_btl_tcp_flags", "send", 0); }

// MPI_Abort has been seen to hang; the process ends all the same.
void exit_after_a_while(int exit_code) noexcept {
  try {
    std::thread([exit_code] {
      std::this_thread::sleep_for(patience_with_abort);
      _exit(exit_code);
    }).detach();
  } catch (...) {
  }
}

}  // namespace

MpiSession::MpiSession(int& argc, char**& argv) : exceptions_at_start_(std::uncaught_exceptions()) {
  prefer_sends_over_tcp();
  int granted = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &granted), "MPI_Init_thread");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

MpiSession::~MpiSession() {
  if (std::uncaught_exceptions() == exceptions_at_start_) MPI_Finalize();
}

std::string MpiSession::thread_level() const {
  int level = MPI_THREAD_SINGLE;
  mpi_call("MPI_Query_thread", MPI_Query_thread, &level);
  switch (level) {
    case MPI_THREAD_MULTIPLE:
      return "multiple";
    case MPI_THREAD_SERIALIZED:
      return "serialized";
    case MPI_THREAD_FUNNELED:
      return "funneled";
    default:
      return "single";
  }
}

void MpiSession::abort(int exit_code) noexcept {
  int started = 0, ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  if (started == 0 || ended != 0) _exit(exit_code);
  exit_after_a_while(exit_code);
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  _exit(exit_code);
}

}  // namespace foreshard::comm
