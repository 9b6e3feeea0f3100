#pragma once
#include <functional>

#include "comm/communicator.hpp"

namespace foreshard::calibrate {

/// Runs `body` once on each of `count` threads of this process, each with its own connection to the others, and returns
/// when all have ended. Throws what the first of them threw.
void run_local_ranks(int count, const std::function<void(comm::Communicator&)>& body);

/// As run_local_ranks, but each thread is alone in a world of one rank; they only run at the same time.
void run_lone_ranks(int count, const std::function<void(int thread, comm::Communicator&)>& body);

}  // namespace foreshard::calibrate
