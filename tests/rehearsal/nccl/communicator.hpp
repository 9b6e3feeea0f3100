#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "rehearsal/nccl/clique.hpp"

namespace rehearsal {
void note_nccl_error(const std::string& what);
}

/// One rank's communicator. While one thread uses it another may ask for its errors.
struct ncclComm {
  mutable std::recursive_mutex mutex;
  std::shared_ptr<rehearsal::Clique> clique;  ///< null while it is split off its parent
  int rank = 0, device = 0;
  bool blocking = true, finalized = false;
  std::shared_ptr<rehearsal::Fate> fate = std::make_shared<rehearsal::Fate>();
  std::size_t splits = 0;
  bool used = false;
  /// What it has not done yet; each question about errors moves it on. ncclInProgress, or how it ended.
  std::function<ncclResult_t()> pending;
  void begin(std::function<ncclResult_t()>);

  /// ncclSuccess if a call may be made: nothing is pending and nothing failed.
  ncclResult_t ready();
  ncclResult_t state();
  ncclResult_t fail(ncclResult_t, const std::string& what);
};
