#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "comm/communicator.hpp"

namespace foreshard::comm {

struct MpiOptions {
  bool shared_memory = true;  ///< false forces plain messages, as across nodes
  int ranks_per_node = 0;     ///< above 0: act as if nodes held so many ranks at most, to try several nodes on one
  std::int64_t longest_message_bytes = std::int64_t{1} << 30;  ///< longer transfers are cut, since MPI counts in int
};

/// MPI from MPI_Init_thread to MPI_Finalize: make one at the start of main. When it goes because of an exception it
/// does not finalize, which would wait for ranks that do not come: whoever catches the exception calls `abort`.
class MpiSession {
 public:
  MpiSession(int& argc, char**& argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  std::string thread_level() const;  ///< granted: "multiple", "serialized", "funneled" or "single"

  /// Ends all ranks of the job with this exit code, from any thread, also after the session went because of an
  /// exception.
  [[noreturn]] static void abort(int exit_code) noexcept;

 private:
  int exceptions_at_start_;
};

/// The connection of this process to the others of MPI_COMM_WORLD. Collective. Needs a live MpiSession.
std::unique_ptr<Communicator> make_mpi(const MpiOptions& options = {});

}  // namespace foreshard::comm
