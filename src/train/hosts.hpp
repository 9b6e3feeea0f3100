#pragma once
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace foreshard::train {

/// The cores that this process is bound to; where it is not bound, its share of the node's.
int cores_of_rank(int ranks_of_node);

/// Collective: host names by rank, on rank 0; elsewhere nothing.
std::vector<std::string> gather_hosts(comm::Communicator& communicator);

}  // namespace foreshard::train
