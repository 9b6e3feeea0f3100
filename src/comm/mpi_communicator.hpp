#pragma once
#include <memory>
#include <string>

#include "comm/communicator.hpp"

namespace foreshard::comm {

struct MpiOptions {
  bool shared_memory = true;  ///< false forces plain messages, as across nodes
};

/// MPI from MPI_Init_thread to MPI_Finalize: make one at the start of main.
class MpiSession {
 public:
  MpiSession(int& argc, char**& argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  std::string thread_level() const;  ///< granted: "multiple", "serialized", "funneled" or "single"
};

/// The connection of this process to the others of MPI_COMM_WORLD. Collective. Needs a live MpiSession.
std::unique_ptr<Communicator> make_mpi(const MpiOptions& options = {});

}  // namespace foreshard::comm
